import { randomUUID } from 'node:crypto';
import type { FinishedCall } from '../gateway/records.ts';
import { isObject } from '../json.ts';
import type { Span } from '../protocol/json-scanner.ts';
import { byteLength, type Chunks, join, type RpcError } from '../protocol/jsonrpc.ts';
import { bytesAt, type Message } from '../protocol/message.ts';
import type { CallRecord } from '../store/call-record.ts';

/** Larger payloads are omitted: records are for inspection, not storage. */
const MAX_PAYLOAD_BYTES = 256 * 1024;

/** Whether a few numbers describe the call completely. */
export function isPlain({ error, request, answer, run }: FinishedCall): boolean {
  return error === undefined && request === undefined && answer === undefined && run === undefined;
}

export function recordOf(
  call: FinishedCall,
  endedAt: number,
  redact: (projectId: string, text: string) => string,
): CallRecord {
  const { project, request, answer, isRpcError } = call;
  const clean = (text: string) => redact(project.id, text);
  const keeps = request !== undefined;
  return {
    id: randomUUID(),
    projectId: project.id,
    runId: call.run?.id,
    step: call.run?.step,
    principal: call.principal,
    client: call.client,
    method: call.method,
    server: call.server,
    replica: call.replica ?? null,
    tool: clean(call.own),
    status: statusOf(call),
    durationMs: Math.round(call.durationMs * 1_000) / 1_000,
    inputBytes: call.inputBytes,
    outputBytes: call.outputBytes,
    error: cleanError(errorOf(call), clean),
    input: keeps && request.params !== undefined ? inputOf(request, request.params, clean) : null,
    output: keeps && answer !== undefined && !isRpcError ? outputOf(answer, clean) : null,
    startedAt: new Date(endedAt - call.durationMs),
  };
}

function statusOf({ outcome, error, isRpcError, isToolError }: FinishedCall): CallRecord['status'] {
  if (outcome === 'cancelled') return 'cancelled';
  if (outcome === 'failed') return error?.code === 'call_timeout' ? 'timeout' : 'error';
  if (isRpcError) return 'error';
  return isToolError ? 'tool_error' : 'ok';
}

function errorOf({ error, isRpcError, answer }: FinishedCall): CallRecord['error'] {
  if (error !== undefined) return { code: error.code, message: error.message };
  if (!isRpcError || answer === undefined) return null;
  if (byteLength(answer) > MAX_PAYLOAD_BYTES)
    return { code: 'server_error', message: 'The error is too large.' };
  try {
    const { error: rpcError } = JSON.parse(join(answer).toString()) as { error?: RpcError };
    return { code: String(rpcError?.code), message: String(rpcError?.message) };
  } catch {
    return { code: 'server_error', message: 'The error is not valid JSON.' };
  }
}

function cleanError(error: CallRecord['error'], clean: (text: string) => string): CallRecord['error'] {
  return error && { code: error.code, message: clean(error.message) };
}

/** For a tool only its arguments, otherwise all params. */
function inputOf(request: Message, params: Span, clean: (text: string) => string): string | null {
  return payload([bytesAt(request.bytes, params)], clean, (value) =>
    request.method === 'tools/call' ? value.arguments : value,
  );
}

function outputOf(answer: Chunks, clean: (text: string) => string): string | null {
  return payload(answer, clean, ({ result }) => withoutFiles(result));
}

/** Omits images, audio and files, however deeply nested. */
export function withoutFiles(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutFiles);
  if (!isObject(value)) return value;
  const { type, data, uri, blob } = value;
  const isMedia = (type === 'image' || type === 'audio') && typeof data === 'string';
  const isFile = typeof uri === 'string' && typeof blob === 'string';
  const file = isMedia ? 'data' : isFile ? 'blob' : undefined;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) =>
      key === file
        ? ['omitted', `${String(item).length} characters of base64 are not kept`]
        : [key, withoutFiles(item)],
    ),
  );
}

function payload(
  chunks: Chunks,
  clean: (text: string) => string,
  part: (value: Record<string, unknown>) => unknown,
): string {
  const bytes = byteLength(chunks);
  if (bytes > MAX_PAYLOAD_BYTES) return JSON.stringify({ omitted: `${bytes} bytes are too many to be kept` });
  try {
    const value = JSON.parse(join(chunks).toString()) as Record<string, unknown>;
    return JSON.stringify(cleanValue(part(value) ?? null, clean));
  } catch {
    return JSON.stringify({ omitted: 'it is not valid JSON' });
  }
}

/** Redacts strings and keys only: numbers are not secrets, and masking them would break the JSON. */
export function cleanValue(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === 'string') return clean(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => cleanValue(item, clean));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [clean(key), cleanValue(item, clean)]),
  );
}

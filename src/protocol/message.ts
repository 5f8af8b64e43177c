import type { Span } from './json-scanner.ts';
import type { RequestId } from './jsonrpc.ts';
import { MAX_ID_BYTES } from './scalar-limits.ts';

export type MessageKind = 'request' | 'notification' | 'result' | 'error';

/** One JSON-RPC message: its bytes, and the ranges that routing needs. */
export interface Message {
  bytes: Buffer;
  kind: MessageKind;
  /** Empty for responses. */
  method: string;
  id: RequestId | undefined;
  idSpan: Span | undefined;
  params: Span | undefined;
  /** `params.name` and `params.uri`, if they are strings: the range with quotes, and the decoded value. */
  name: StringSpan | undefined;
  uri: StringSpan | undefined;
  /** The target of a completion. */
  reference: Reference | undefined;
  /** `params.task`: run the call as a task. `params.taskId`: the task that the request is about. */
  task: Span | undefined;
  taskId: StringSpan | undefined;
  /** `params.requestId` (of a cancellation) and `params.progressToken` (of progress). */
  requestId: Span | undefined;
  progressToken: Span | undefined;
  /** `params._meta.progressToken`: the sender wants progress under this token. */
  wantedProgress: Span | undefined;
  /** `params._meta.projectId` or `project_id`. */
  projectId: StringSpan | undefined;
  /** `params.inputResponses` and `params.requestState`: the input that an earlier response asked for. */
  inputResponses: Span | undefined;
  requestState: Span | undefined;
  /** `params._meta`, of any type. */
  meta: Span | undefined;
  /** The protocol's own keys in `params._meta`. */
  claims: Claims | undefined;
  result: Span | undefined;
  /** `params._meta`, if it has options for us: keys that start with `dev.switchboard/`. */
  callOptions: Span | undefined;
}

/** The protocol's own keys in `_meta`: the description of a modern sender, and the subscription of a notification. */
export interface Claims {
  protocolVersion?: Claim;
  clientCapabilities?: Claim;
  clientInfo?: Claim;
  logLevel?: Claim;
  subscriptionId?: Claim;
}

/** The range of a member of `_meta`, including its key, and that of its value. */
export interface Claim extends Span {
  value: Span;
}

export interface StringSpan extends Span {
  value: string;
}

interface Reference {
  type: StringSpan | undefined;
  name: StringSpan | undefined;
  uri: StringSpan | undefined;
}

/** Decodes a JSON-RPC id; undefined if MCP does not allow it, or if it is too long. */
export function idValue(bytes: Buffer, span: Span): RequestId | undefined {
  if (span.end - span.start > MAX_ID_BYTES) return undefined;
  const text = bytes.toString('utf8', span.start, span.end);
  if (text.charCodeAt(0) === 0x22) return JSON.parse(text) as string;
  const number = Number(text);
  if (Number.isSafeInteger(number)) return number;
  return /^-?\d+$/.test(text) ? BigInt(text) : undefined;
}

export function bytesAt(bytes: Buffer, span: Span): Buffer {
  return bytes.subarray(span.start, span.end);
}

export function idBytes({ bytes, idSpan }: Message): Buffer {
  return bytesAt(bytes, idSpan!);
}

import type { Span } from './json-scanner.ts';
import type { RequestId } from './jsonrpc.ts';
import { MAX_ID_BYTES } from './scalar-limits.ts';

export type MessageKind = 'request' | 'notification' | 'result' | 'error';

/** One JSON-RPC message: its bytes as they travel, and where in them the parts stand that routing needs. */
export interface Message {
  bytes: Buffer;
  kind: MessageKind;
  /** Empty for answers. */
  method: string;
  id: RequestId | undefined;
  idSpan: Span | undefined;
  params: Span | undefined;
  /** `params.name` and `params.uri`, where they are strings: span with the quotes, and the decoded value. */
  name: StringSpan | undefined;
  uri: StringSpan | undefined;
  /** What a completion is asked for. */
  reference: Reference | undefined;
  /** `params.task`: the sender of this call wants it done as a task. `params.taskId`: the task that this is about. */
  task: Span | undefined;
  taskId: StringSpan | undefined;
  /** `params.requestId` (of a cancellation) and `params.progressToken` (of progress). */
  requestId: Span | undefined;
  progressToken: Span | undefined;
  /** `params._meta.progressToken`: the sender of this request wants progress under this token. */
  wantedProgress: Span | undefined;
  /** `params._meta.projectId` or `project_id`: the project that the request is about. */
  projectId: StringSpan | undefined;
  /** `params.inputResponses` and `params.requestState`: what the sender was asked for by the answer to an earlier request. */
  inputResponses: Span | undefined;
  requestState: Span | undefined;
  /** `params._meta`, whatever it is. */
  meta: Span | undefined;
  /** What `params._meta` says under the protocol's own keys. */
  claims: Claims | undefined;
  /** The result of an answer. */
  result: Span | undefined;
  /** `params._meta`, where it has something in it that the sender wants of us: keys that start with `dev.switchboard/`. */
  callOptions: Span | undefined;
}

/** The protocol's own keys of `_meta`: what a request of the modern era says of its sender, and whose subscription it is. */
export interface Claims {
  protocolVersion?: Claim;
  clientCapabilities?: Claim;
  clientInfo?: Claim;
  logLevel?: Claim;
  subscriptionId?: Claim;
}

/** One member of `_meta`: the whole of it, key and all, and its value. */
export interface Claim extends Span {
  value: Span;
}

export interface StringSpan extends Span {
  value: string;
}

/** The strings of `params.ref`. */
interface Reference {
  type: StringSpan | undefined;
  name: StringSpan | undefined;
  uri: StringSpan | undefined;
}

/** The value of a JSON-RPC id, or undefined where it is none that MCP allows, or longer than we take. */
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

/** The id of a request as it was written. */
export function idBytes({ bytes, idSpan }: Message): Buffer {
  return bytesAt(bytes, idSpan!);
}

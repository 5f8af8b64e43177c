import type { SwitchboardError } from '../errors.ts';
import { byteLength, type Chunks } from '../protocol/jsonrpc.ts';
import type { Message } from '../protocol/message.ts';
import { saysToolError } from '../protocol/tool-error.ts';
import type { Group } from '../upstreams/group.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Project } from '../upstreams/settings.ts';
import type { Caller } from './caller.ts';

/** A run of an agent, and the turn of its model in which a call was made. */
export interface RunOfCall {
  /** A uuid. */
  id: string;
  step: number;
}

/** One request of a client that was routed to a server, when it is over. */
export interface FinishedCall {
  project: Project;
  /** What the client calls itself. */
  client: string;
  method: string;
  /** The server, or the group where it did not get as far as one; and which of its replicas. */
  server: string;
  replica: number | undefined;
  /** The server's own name or URI of what was asked for. */
  own: string;
  outcome: 'answered' | 'failed' | 'cancelled';
  /** The server answered with a JSON-RPC error. */
  isRpcError: boolean;
  /** The tool says that it failed. */
  isToolError: boolean;
  error: SwitchboardError | undefined;
  durationMs: number;
  inputBytes: number;
  outputBytes: number;
  /** Only where they are kept: the request, and the answer. */
  request: Message | undefined;
  answer: Chunks | undefined;
  /** Where its client says so. */
  run?: RunOfCall | undefined;
}

/** Whoever writes down what calls there were. */
export interface CallRecorder {
  /** Whether arguments and results of this project are to be kept. */
  keepsPayloads(project: Project): boolean;
  record(call: FinishedCall): void;
}

/** Without a database nothing is kept. */
export const recordsNothing: CallRecorder = { keepsPayloads: () => false, record() {} };

/** A call as far as its record needs it. */
interface RecordedCall {
  readonly message: Message;
  readonly group: Group;
  readonly caller: Caller;
  readonly replica: Replica | undefined;
  readonly request: { readonly own: string };
  readonly startedAt: number;
  readonly context: { readonly run?: RunOfCall | undefined };
}

/** `response` is what the server sent, if anything. */
export function recordCall(
  recorder: CallRecorder,
  { message, group, caller, replica, request, startedAt, context }: RecordedCall,
  outcome: FinishedCall['outcome'],
  error?: SwitchboardError,
  response?: Chunks,
  isRpcError = false,
): void {
  const keeps = recorder.keepsPayloads(group.project);
  recorder.record({
    project: group.project,
    client: caller.facts.name,
    method: message.method,
    server: replica?.server ?? group.name,
    replica: replica?.number,
    own: request.own,
    outcome,
    isRpcError,
    isToolError: response !== undefined && message.method === 'tools/call' && saysToolError(response),
    error,
    durationMs: performance.now() - startedAt,
    inputBytes: message.bytes.length,
    outputBytes: response === undefined ? 0 : byteLength(response),
    request: keeps ? message : undefined,
    // A server's error is short, and recorded nowhere else.
    answer: keeps || isRpcError ? response : undefined,
    run: context.run,
  });
}

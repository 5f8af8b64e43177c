import type { SwitchboardError } from '../errors.ts';
import { byteLength, type Chunks } from '../protocol/jsonrpc.ts';
import type { Message } from '../protocol/message.ts';
import { saysToolError } from '../protocol/tool-error.ts';
import type { Group } from '../upstreams/group.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Project } from '../upstreams/settings.ts';
import type { Caller } from './caller.ts';

/** A run of an agent, and the step in which a call was made. */
export interface RunOfCall {
  /** A uuid. */
  id: string;
  step: number;
}

export interface FinishedCall {
  project: Project;
  client: string;
  method: string;
  /** The server and its replica, or the group if none was picked. */
  server: string;
  replica: number | undefined;
  /** The server's own name or URI of the target. */
  own: string;
  outcome: 'answered' | 'failed' | 'cancelled';
  /** Whether the response is a JSON-RPC error. */
  isRpcError: boolean;
  /** Whether the result has `isError`. */
  isToolError: boolean;
  error: SwitchboardError | undefined;
  durationMs: number;
  inputBytes: number;
  outputBytes: number;
  /** The request and the response, if they are recorded. */
  request: Message | undefined;
  answer: Chunks | undefined;
  run?: RunOfCall | undefined;
}

export interface CallRecorder {
  /** Whether arguments and results of this project are recorded. */
  keepsPayloads(project: Project): boolean;
  record(call: FinishedCall): void;
}

/** Without a database nothing is recorded. */
export const recordsNothing: CallRecorder = { keepsPayloads: () => false, record() {} };

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

import type { SwitchboardError } from '../errors.ts';
import { byteLength, type Chunks } from '../protocol/jsonrpc.ts';
import type { Message } from '../protocol/message.ts';
import { saysToolError } from '../protocol/tool-error.ts';
import type { Group } from '../upstreams/group.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Project } from '../upstreams/settings.ts';
import type { Caller } from './caller.ts';

export interface RunOfCall {
  id: string;
  step: number;
}

export interface FinishedCall {
  project: Project;
  /** Who sent it; undefined if Switchboard did. */
  principal?: { readonly id: string; readonly name: string } | undefined;
  client: string;
  method: string;
  /** The server and its replica, or the group if none was picked. */
  server: string;
  replica: number | undefined;
  own: string;
  outcome: 'answered' | 'failed' | 'cancelled';
  isRpcError: boolean;
  isToolError: boolean;
  error: SwitchboardError | undefined;
  durationMs: number;
  inputBytes: number;
  outputBytes: number;
  /** Set if payloads are recorded. */
  request: Message | undefined;
  answer: Chunks | undefined;
  run?: RunOfCall | undefined;
}

export interface CallRecorder {
  keepsPayloads(project: Project): boolean;
  record(call: FinishedCall): void;
}

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
    principal: caller.principal,
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

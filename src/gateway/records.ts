import type { SwitchboardError } from '../errors.ts';
import type { Message } from '../protocol/envelope.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Project } from '../upstreams/settings.ts';

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

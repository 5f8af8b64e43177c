import { SwitchboardError } from '../errors.ts';
import type { RpcError } from '../protocol/jsonrpc.ts';

/** What the command's exit code says. */
export const exitCodes = {
  ok: 0,
  /** The command was carried out, and what it asked for failed: a tool said error, a server did not answer. */
  failed: 1,
  /** The command or a configuration file is wrong. */
  usage: 2,
  /** There is no Switchboard at the address. */
  unreachable: 3,
} as const;

/** An answer of the other side that says: error. */
export class RpcFailure extends Error {
  readonly rpc: RpcError;

  constructor(rpc: RpcError) {
    super(rpc.message);
    this.rpc = rpc;
  }
}

/** The Switchboard that a command wants to talk to is not there. */
export class UnreachableError extends Error {}

/** Errors that say that the command, or a file that it names, is wrong. */
const usageErrors = new Set<string>(['invalid_config', 'invalid_input']);

/** What was written on the command line cannot be carried out. */
export function usageError(message: string): SwitchboardError {
  return new SwitchboardError('invalid_input', message);
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof UnreachableError) return exitCodes.unreachable;
  if (error instanceof SwitchboardError && usageErrors.has(error.code)) return exitCodes.usage;
  return exitCodes.failed;
}

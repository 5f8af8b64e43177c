import { SwitchboardError } from '../errors.ts';
import type { RpcError } from '../protocol/jsonrpc.ts';

export const exitCodes = {
  ok: 0,
  /** The command ran but the operation failed: a tool returned an error, a server did not respond. */
  failed: 1,
  /** The command line or a configuration file is invalid. */
  usage: 2,
  /** No Switchboard responds at the address. */
  unreachable: 3,
} as const;

export class RpcFailure extends Error {
  readonly rpc: RpcError;

  constructor(rpc: RpcError) {
    super(rpc.message);
    this.rpc = rpc;
  }
}

export class UnreachableError extends Error {}

const usageErrors = new Set<string>(['invalid_config', 'invalid_input']);

export function usageError(message: string): SwitchboardError {
  return new SwitchboardError('invalid_input', message);
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof UnreachableError) return exitCodes.unreachable;
  if (error instanceof SwitchboardError && usageErrors.has(error.code)) return exitCodes.usage;
  return exitCodes.failed;
}

/** One Ctrl-C may arrive twice: from the terminal and from the parent process. */
const REPEAT_MS = 500;

/**
 * Calls `stop` on the first signal, and `stopNow` on a later one. SIGHUP never calls `stopNow`, because a closed terminal
 * may send it repeatedly. Returns a function that removes the handlers.
 */
export function onStopSignals(stop: () => void, stopNow: () => void): () => void {
  let since: number | undefined;
  const begin = () => {
    since = performance.now();
    stop();
  };
  const interrupted = () => {
    if (since === undefined) begin();
    else if (performance.now() - since >= REPEAT_MS) stopNow();
  };
  const hungUp = () => {
    if (since === undefined) begin();
  };
  const handlers = { SIGINT: interrupted, SIGTERM: interrupted, SIGHUP: hungUp };
  for (const [signal, handler] of Object.entries(handlers)) process.on(signal, handler);
  return () => {
    for (const [signal, handler] of Object.entries(handlers)) process.off(signal, handler);
  };
}

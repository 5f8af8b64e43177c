import { QuotingError } from '../channels/errors.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import type { RpcError } from '../protocol/jsonrpc.ts';

/** Answer of a server to one of our own requests that says: error. */
export class RpcResponseError extends Error {
  readonly rpc: RpcError;

  constructor(method: string, rpc: RpcError) {
    super(`${method}: ${rpc.message} (${rpc.code})`);
    this.rpc = rpc;
  }
}

/** The same failure, in words that say which server it is about. */
export function aboutServer(error: unknown, name: string): SwitchboardError {
  if (error instanceof RpcResponseError) {
    return new SwitchboardError(
      'server_start_failed',
      `Server "${name}" refused the handshake: ${error.message}`,
      {
        cause: error,
        data: { server: name },
      },
    );
  }
  const known = asSwitchboardError(error);
  if (known.data.server === name) return known;
  const code = known.code === 'internal' ? 'server_start_failed' : known.code;
  return new SwitchboardError(code, `Server "${name}" is not available: ${known.message}`, {
    cause: error,
    data: { ...known.data, server: name },
  });
}

export function notJson(method: string, cause: unknown): SwitchboardError {
  return new SwitchboardError('server_protocol_error', `The answer to ${method} is not JSON.`, { cause });
}

export function tooManyWait(server: string): SwitchboardError {
  return new SwitchboardError(
    'server_busy',
    `Server "${server}" is busy: too many calls wait for it already (setting queueLimit).`,
    { data: { server } },
  );
}

/** `what` says what the server did not do in time. */
export function timedOut(
  server: string,
  what: string,
  waitedMs: number,
  limit: string,
  timeoutMs: number,
): SwitchboardError {
  return new SwitchboardError(
    'call_timeout',
    `Server "${server}" ${what} within ${waitedMs} ms (${limit}).`,
    { data: { server, timeoutMs } },
  );
}

/** Whether the server went away without a word on the call. */
export function isCutOff({ code, data }: SwitchboardError): boolean {
  return code === 'server_unavailable' && data.status === undefined;
}

/** Whoever made the call has to know, before making it again. */
export function maybeExecuted(error: SwitchboardError): SwitchboardError {
  const message = `${error.message} (the call may have been carried out, and is not sent again)`;
  return new SwitchboardError(error.code, message, { cause: error, data: error.data });
}

/** Every error says which server it is about. */
export function named(error: SwitchboardError, server: string): SwitchboardError {
  if (error.data.server === server) return error;
  return new SwitchboardError(error.code, `Server "${server}": ${error.message}`, {
    cause: error,
    data: { ...error.data, server },
  });
}

/** The same error without secrets in its words. What it was caused by is left behind with them. */
export function redacted(error: SwitchboardError, redact: (text: string) => string): SwitchboardError {
  if (error instanceof QuotingError) return error.masked(redact);
  const message = redact(error.message);
  if (message === error.message) return error;
  return new SwitchboardError(error.code, message, { data: error.data });
}

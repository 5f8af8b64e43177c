import { QuotingError } from '../channels/errors.ts';
import type { ServerConfig } from '../config.ts';
import { asSwitchboardError, type ErrorCode, SwitchboardError } from '../errors.ts';
import type { RpcError } from '../protocol/jsonrpc.ts';

/** A server responded to one of our own requests with an error. */
export class RpcResponseError extends Error {
  readonly rpc: RpcError;

  constructor(method: string, rpc: RpcError) {
    super(`${method}: ${rpc.message} (${rpc.code})`);
    this.rpc = rpc;
  }
}

/** The same error, with the name of the server that could not be connected. */
export function connectError(error: unknown, server: string): SwitchboardError {
  if (error instanceof RpcResponseError) {
    const message = `Server "${server}" rejected the handshake: ${error.message}`;
    return new SwitchboardError('server_start_failed', message, { cause: error, data: { server } });
  }
  const known = asSwitchboardError(error);
  if (known.data.server === server) return known;
  const code = known.code === 'internal' ? 'server_start_failed' : known.code;
  return new SwitchboardError(code, `Server "${server}" is not available: ${known.message}`, {
    cause: error,
    data: { ...known.data, server },
  });
}

export function notJson(method: string, cause: unknown): SwitchboardError {
  return new SwitchboardError('server_protocol_error', `The response to ${method} is not JSON.`, { cause });
}

export function queueFull(server: string): SwitchboardError {
  const message = `Server "${server}" is busy: its queue of calls is full (setting queueLimit).`;
  return new SwitchboardError('server_busy', message, { data: { server } });
}

/** `what` the server failed to do within `timeoutMs`. `requested` is the timeout that the client asked for. */
export function callTimeout(
  { name: server, timeoutMs: configured, transport }: ServerConfig,
  what: string,
  waitedMs: number,
  timeoutMs: number,
  requested: number | undefined,
): SwitchboardError {
  const setting = transport.type === 'hosted' ? 'hosting.callTimeoutMs' : 'timeoutMs';
  const limit = (requested ?? timeoutMs) === configured ? `setting ${setting}` : 'timeout of the call';
  const message = `Server "${server}" ${what} within ${waitedMs} ms (${limit}).`;
  return new SwitchboardError('call_timeout', message, { data: { server, timeoutMs } });
}

/** Whether the connection was lost, so that nothing is known about the call. */
export function isConnectionLoss({ code, data }: SwitchboardError): boolean {
  return code === 'server_unavailable' && data.status === undefined;
}

export function maybeExecuted(error: SwitchboardError): SwitchboardError {
  const message = `${error.message} (the call may have been executed, and is not sent again)`;
  return new SwitchboardError(error.code, message, { cause: error, data: error.data });
}

/** The same error, with the name of its server. */
export function named(error: SwitchboardError, server: string): SwitchboardError {
  if (error.data.server === server) return error;
  return new SwitchboardError(error.code, `Server "${server}": ${error.message}`, {
    cause: error,
    data: { ...error.data, server },
  });
}

/** The same error with secrets masked, and without its cause if that may contain them. */
export function redacted(error: SwitchboardError, redact: (text: string) => string): SwitchboardError {
  if (error instanceof QuotingError) return error.masked(redact);
  const message = redact(error.message);
  if (message === error.message) return error;
  return new SwitchboardError(error.code, message, { data: error.data });
}

export interface Backend {
  server: string;
  replica: number;
  state: string;
  reason: string | null;
  nextTry: string | null;
}

/** `failures` are the errors of the backends that were tried. */
export function noBackends(
  group: string,
  backends: readonly Backend[],
  failures: readonly SwitchboardError[],
  cause: SwitchboardError | undefined,
): SwitchboardError {
  const described = backends.map(({ server, replica, state, reason, nextTry }) => {
    const when = nextTry === null ? '' : `, next try at ${nextTry}`;
    const why = reason === null ? '' : ` (${reason})`;
    return `${server}/${replica} is ${state.replace('_', ' ')}${when}${why}`;
  });
  // One backend that takes calls again is enough.
  const retries = failures.flatMap(({ data: { retryAfterMs } }) =>
    typeof retryAfterMs === 'number' ? [retryAfterMs] : [],
  );
  const retry = retries.length === 0 ? {} : { retryAfterMs: Math.min(...retries) };
  const message = `No backends available in group "${group}": ${described.join('; ')}.`;
  return new SwitchboardError('no_backends', message, { cause, data: { group, backends, ...retry } });
}

const failures: ReadonlySet<string> = new Set<ErrorCode>([
  ...(['server_unavailable', 'server_start_failed', 'server_protocol_error'] as const),
  ...(['no_backends', 'no_isolation'] as const),
]);

/**
 * What those who do not operate the project may read of an error: why a server fails tells of its configuration and its
 * machine. Undefined if they may read all of it.
 */
export function textWithoutReason(code: string, server: string | null): string | undefined {
  if (!failures.has(code)) return undefined;
  const which = server === null ? 'The server' : `Server "${server}"`;
  return `${which} is not available. A call that it had begun may have been executed.`;
}

/** The same error for those who do not operate the project. */
export function withoutReason(error: unknown, server: string): unknown {
  if (!(error instanceof SwitchboardError)) return error;
  const text = textWithoutReason(error.code, server);
  return text === undefined ? error : new SwitchboardError(error.code, text, { data: { server } });
}

import { SwitchboardError } from '../errors.ts';

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

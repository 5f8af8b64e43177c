import type { ServerResponse } from 'node:http';
import { asSwitchboardError } from '../../errors.ts';
import { errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import { writeJson } from './post-outlet.ts';

/** Where the rest of a request's body may still come. */
const isLeft: ReadonlySet<string> = new Set(['too_large', 'request_timeout']);

/** An HTTP request that cannot be answered otherwise: the status of the error, and the error as JSON-RPC. */
export function writeFailure(
  response: ServerResponse,
  thrown: unknown,
  headers: Record<string, string> = {},
): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const error = asSwitchboardError(thrown);
  // What is left of a body that nobody reads must not be taken for the next request.
  const closing = isLeft.has(error.code) ? { connection: 'close' } : {};
  writeJson(
    response,
    [errorMessage(undefined, toRpcError(error))],
    { ...headers, ...closing },
    error.kind.http,
  );
}

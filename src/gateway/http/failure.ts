import type { ServerResponse } from 'node:http';
import { asSwitchboardError, leavesBody } from '../../errors.ts';
import { errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import { writeJson } from '../legacy/outlet.ts';

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
  const closing = leavesBody(error.code) ? { connection: 'close' } : {};
  writeJson(
    response,
    [errorMessage(undefined, toRpcError(error))],
    { ...headers, ...closing },
    error.kind.http,
  );
}

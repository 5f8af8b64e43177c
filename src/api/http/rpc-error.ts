import { SwitchboardError } from '../../errors.ts';
import { parseLossless } from '../../protocol/lossless.ts';

/** A range of JSON-RPC error codes, inclusive, and its HTTP status. */
export interface RpcStatus {
  from: number;
  to: number;
  status: number;
  meaning: string;
}

/** Other codes are defined by the server, so it understood the request and refused it. */
export const OTHER_STATUS = 422;

/** The first match counts. docs/hosting.md shows this table, and a test compares the two. */
export const rpcStatuses: readonly RpcStatus[] = [
  one(-32700, 502, 'The server could not parse our message'),
  one(-32600, 502, 'The server rejected our message as invalid'),
  one(-32601, 404, 'No such method'),
  one(-32602, 400, 'The parameters do not fit the method, or there is no such tool'),
  one(-32603, 502, 'An internal error of the server'),
  one(-32002, 404, 'No such resource'),
  { from: -32099, to: -32000, status: 502, meaning: 'Other errors that MCP or the server defines' },
];

export function httpStatusOf(code: number): number {
  return rpcStatuses.find(({ from, to }) => from <= code && code <= to)?.status ?? OTHER_STATUS;
}

function one(code: number, status: number, meaning: string): RpcStatus {
  return { from: code, to: code, status, meaning };
}

/** `details.rpc` has the whole error. */
export class ServerRpcError extends SwitchboardError {
  readonly status: number;

  /** `errorText` is the error as the server sent it. */
  constructor(errorText: string) {
    const rpc = parseLossless(errorText) as { code?: unknown; message?: unknown } | null;
    const hasMessage = typeof rpc?.message === 'string' && rpc.message !== '';
    super(
      'server_error',
      hasMessage ? String(rpc.message) : 'The server returned an error without a message.',
      {
        data: { rpc },
      },
    );
    this.status = httpStatusOf(typeof rpc?.code === 'number' ? rpc.code : Number.NaN);
  }
}

/** JSON-RPC codes from one to another, both inclusive, and the HTTP status of an answer with such an error. */
export interface RpcStatus {
  from: number;
  to: number;
  status: number;
  meaning: string;
}

/** What is none of these is an error that the server made up for itself: it understood, and refuses. */
export const OTHER_STATUS = 422;

/** The first row that fits counts. docs/hosting.md shows this table; a test keeps the two the same. */
export const rpcStatuses: readonly RpcStatus[] = [
  one(-32700, 502, 'The server could not parse our message'),
  one(-32600, 502, 'The server did not take our message for a request'),
  one(-32601, 404, 'No such method'),
  one(-32602, 400, 'The parameters do not fit the method, or there is no such tool'),
  one(-32603, 502, 'The server failed inside'),
  one(-32002, 404, 'No such resource'),
  { from: -32099, to: -32000, status: 502, meaning: 'Other errors of servers' },
];

export function httpStatusOf(code: number): number {
  return rpcStatuses.find(({ from, to }) => from <= code && code <= to)?.status ?? OTHER_STATUS;
}

function one(code: number, status: number, meaning: string): RpcStatus {
  return { from: code, to: code, status, meaning };
}

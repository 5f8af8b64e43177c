import type { SwitchboardError } from '../../errors.ts';
import { errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';

/** For connections that carry no request yet. */
export function wholeResponse(error: SwitchboardError): Buffer {
  const body = errorMessage(undefined, toRpcError(error));
  const { STATUS_CODES } = process.getBuiltinModule('node:http');
  const head = [
    `HTTP/1.1 ${error.kind.http} ${STATUS_CODES[error.kind.http]}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    'connection: close',
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]);
}

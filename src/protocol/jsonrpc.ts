import { errorTable, type SwitchboardError } from '../errors.ts';
import type { Era } from './versions.ts';

/** A decoded JSON-RPC id. Ids over 2^53 are bigints, so that they stay distinct. */
export type RequestId = string | number | bigint;

export const METHOD_NOT_FOUND = -32_601;

/** One message as consecutive buffers. Large messages are never joined. */
export type Chunks = readonly Buffer[];

export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

const open = Buffer.from('{"jsonrpc":"2.0","id":');
const resultOpen = Buffer.from(',"result":');
const errorOpen = Buffer.from(',"error":');
const close = Buffer.from('}');

export const emptyResult = Buffer.from('{}');

export function bytesOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

export function resultMessage(id: Buffer, ...result: Buffer[]): Buffer[] {
  return [open, id, resultOpen, ...result, close];
}

/** `id` is the raw id; undefined if it could not be read. */
export function errorMessage(id: Buffer | undefined, error: RpcError): Buffer {
  return Buffer.concat([open, id ?? Buffer.from('null'), errorOpen, bytesOf(error), close]);
}

export function notificationMessage(method: string, params?: unknown): Buffer {
  return bytesOf(params === undefined ? { jsonrpc: '2.0', method } : { jsonrpc: '2.0', method, params });
}

export function requestMessage(id: number, method: string, params?: unknown): Buffer {
  return bytesOf(
    params === undefined ? { jsonrpc: '2.0', id, method } : { jsonrpc: '2.0', id, method, params },
  );
}

/** Converts an error for a JSON-RPC response to a client of this era. */
export function toRpcError(error: SwitchboardError, era: Era = 'legacy'): RpcError {
  // The modern era has no separate code for this.
  const isMissing = era === 'modern' && error.code === 'unknown_resource';
  const code = isMissing ? errorTable.invalid_params.rpc : error.kind.rpc;
  return { code, message: error.message, data: { ...error.data, code: error.code } };
}

export function join(chunks: Chunks): Buffer {
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

export function byteLength(chunks: Chunks): number {
  let length = 0;
  for (const chunk of chunks) length += chunk.length;
  return length;
}

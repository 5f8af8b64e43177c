import type { Chunks } from './jsonrpc.ts';

const key = Buffer.from('"isError"');
const TRUE = 0x74;

/** Larger responses are searched only near both ends, where all known servers write the key. */
const WHOLE_BYTES = 16 * 1024;
const EDGE_BYTES = 512;

/**
 * Whether the response to a tool call says that the tool failed. Inside a string the quotes would be escaped, so
 * searching the bytes is enough; nested keys count too, which is good enough for statistics.
 */
export function saysToolError(chunks: Chunks): boolean {
  const [first] = chunks;
  const last = chunks.at(-1);
  if (first === undefined || last === undefined) return false;
  if (chunks.length === 1 && first.length <= WHOLE_BYTES) return isTrueIn(first);
  return isTrueIn(first.subarray(0, EDGE_BYTES)) || isTrueIn(last.subarray(-EDGE_BYTES));
}

function isTrueIn(bytes: Buffer): boolean {
  const found = bytes.indexOf(key);
  if (found === -1) return false;
  let at = found + key.length;
  while (at < bytes.length && (bytes[at]! <= 0x20 || bytes[at] === 0x3a)) at++;
  return bytes[at] === TRUE;
}

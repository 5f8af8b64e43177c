import type { Span } from './json-scanner.ts';
import type { Chunks } from './jsonrpc.ts';

/** What is longer is not copied, but cut where the edits are. */
const COPIED_BYTES = 1024 * 1024;

/** What stands at a span becomes these bytes. */
export interface Edit extends Span {
  bytes: Buffer;
}

/** The same as `splice`, for what is only passed on: a long message does not lie there twice. */
export function spliceChunks(bytes: Buffer, edits: Edit[]): Chunks {
  if (bytes.length <= COPIED_BYTES) return [splice(bytes, edits)];
  const chunks: Buffer[] = [];
  let from = 0;
  for (const edit of edits.sort((a, b) => a.start - b.start)) {
    chunks.push(bytes.subarray(from, edit.start), edit.bytes);
    from = edit.end;
  }
  chunks.push(bytes.subarray(from));
  return chunks.filter(({ length }) => length > 0);
}

/** The bytes with the edits made. Edits do not overlap; their order does not matter. */
export function splice(bytes: Buffer, edits: Edit[]): Buffer {
  if (edits.length > 1) edits.sort((a, b) => a.start - b.start);
  let length = bytes.length;
  for (const edit of edits) length += edit.bytes.length - (edit.end - edit.start);
  const spliced = Buffer.allocUnsafe(length);
  let from = 0;
  let to = 0;
  for (const edit of edits) {
    to += bytes.copy(spliced, to, from, edit.start);
    to += edit.bytes.copy(spliced, to);
    from = edit.end;
  }
  bytes.copy(spliced, to, from);
  return spliced;
}

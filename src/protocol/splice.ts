import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Span } from './json-scanner.ts';
import type { Chunks } from './jsonrpc.ts';

/** Longer messages are not copied, but split at the edits. */
const COPIED_BYTES = 1024 * 1024;

/** Replaces a range with these bytes. */
export interface Edit extends Span {
  bytes: Buffer;
}

/** How many edits are made before other work gets its turn. */
const SLICE_EDITS = 5_000;

/** Like `splice`, but does not copy long messages. */
export function spliceChunks(bytes: Buffer, edits: Edit[]): Chunks {
  if (bytes.length <= COPIED_BYTES) return [splice(bytes, edits)];
  return pieces(
    bytes,
    edits.sort((a, b) => a.start - b.start),
    0,
  );
}

/** Splits the bytes from `start` at the edits, which must be sorted. */
function pieces(bytes: Buffer, edits: Edit[], start: number): Buffer[] {
  const chunks: Buffer[] = [];
  let from = start;
  for (const edit of edits) {
    chunks.push(bytes.subarray(from, edit.start), edit.bytes);
    from = edit.end;
  }
  chunks.push(bytes.subarray(from));
  return chunks.filter(({ length }) => length > 0);
}

/** Applies edits, which must not overlap and are sorted here. */
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

/** The same in slices, for very many edits, which are created on demand. */
export async function spliceMany(
  bytes: Buffer,
  few: Edit[],
  count: number,
  editAt: (index: number) => Edit,
): Promise<Buffer[]> {
  few.sort((a, b) => a.start - b.start);
  const parts: Buffer[] = [];
  let from = 0;
  let next = 0;
  for (let index = 0; index < count; ) {
    const edits: Edit[] = [];
    while (index < count && edits.length < SLICE_EDITS) edits.push(editAt(index++));
    const { end } = edits.at(-1)!;
    while (next < few.length && few[next]!.end <= end) edits.push(few[next++]!);
    const moved = edits.map((edit) => ({ ...edit, start: edit.start - from, end: edit.end - from }));
    parts.push(splice(bytes.subarray(from, end), moved));
    from = end;
    await nextTurn();
  }
  parts.push(...pieces(bytes, few.slice(next), from));
  return parts;
}

import type { Span } from './json-scanner.ts';

/** What stands at a span becomes these bytes. */
export interface Edit extends Span {
  bytes: Buffer;
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

import type { Chunks } from './jsonrpc.ts';

/** Whether a word occurs in a message, even across chunks. */
export function mentions(chunks: Chunks, word: string): boolean {
  let tail: Buffer = Buffer.alloc(0);
  return chunks.some((chunk) => {
    if (chunk.indexOf(word, 0, 'latin1') !== -1) return true;
    if (chunks.length === 1) return false;
    const seam = Buffer.concat([tail, chunk.subarray(0, word.length - 1)]);
    if (tail.length > 0 && seam.indexOf(word, 0, 'latin1') !== -1) return true;
    tail = (chunk.length < word.length ? Buffer.concat([tail, chunk]) : chunk).subarray(1 - word.length);
    return false;
  });
}

/** The start and end of a message, where servers put the members about a large one as a whole. */
export function endsOf(chunks: Chunks): [Buffer, Buffer] {
  return [chunks[0]!.subarray(0, END_BYTES), chunks.at(-1)!.subarray(-END_BYTES)];
}

const END_BYTES = 512;

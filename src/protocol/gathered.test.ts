import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyCuts, cut } from '../../test/helpers/chunks.ts';
import { Gathered } from './gathered.ts';
import { LineSplitter } from './lines.ts';
import { SseParser } from './sse.ts';

const MESSAGE_BYTES = 256 * 1024;
const READ_BYTES = 64 * 1024;

function gather(pieces: Iterable<Buffer>): Buffer[] {
  const gathered = new Gathered();
  for (const piece of pieces) gathered.add(piece);
  return gathered.take();
}

/** The memory that the chunks pin: the whole buffers that they are slices of. */
function pinned(chunks: readonly Buffer[]): number {
  let bytes = 0;
  for (const buffer of new Set(chunks.map((chunk) => chunk.buffer))) bytes += buffer.byteLength;
  return bytes;
}

/** A piece at the beginning of each of many reads. */
function* fromReads(pieceBytes: number, count: number): Generator<Buffer> {
  for (let index = 0; index < count; index++) {
    yield Buffer.alloc(READ_BYTES, 'x').subarray(0, pieceBytes);
  }
}

function expectFew(chunks: readonly Buffer[], bytes: number): void {
  expect(chunks.reduce((sum, { length }) => sum + length, 0)).toBe(bytes);
  expect(chunks.length).toBeLessThan(32);
  expect(pinned(chunks)).toBeLessThanOrEqual(3 * bytes);
}

describe('gathered bytes', () => {
  it('come out once and unchanged, however they are split', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 4_000 }), anyCuts, (bytes, cuts) => {
        const gathered = new Gathered();
        const pieces = cut(Buffer.from(bytes), cuts);
        for (const piece of pieces) gathered.add(piece);
        expect(gathered.length).toBe(bytes.length);
        expect(Buffer.concat(gathered.take())).toEqual(Buffer.from(bytes));
        expect(gathered.take()).toEqual([]);
        for (const piece of pieces) gathered.add(piece);
        expect(gathered.join()).toEqual(Buffer.from(bytes));
        expect(gathered.join()).toEqual(Buffer.alloc(0));
        for (const piece of pieces) gathered.add(piece);
        gathered.clear();
        gathered.add(Buffer.from('new'));
        expect(Buffer.concat(gathered.take()).toString()).toBe('new');
      }),
    );
  });

  it('are passed on uncopied if they came in one piece, or in large ones', () => {
    const small = Buffer.from('a message').subarray(2);
    expect(gather([Buffer.alloc(0), small])[0]).toBe(small);
    const large = [Buffer.alloc(READ_BYTES), Buffer.alloc(READ_BYTES)];
    expect(gather(large)).toEqual(large);
    expect(gather(large)[1]).toBe(large[1]);
  });

  it('are passed on uncopied in the usual pieces of a pipe', () => {
    const lengths = [1_000, 65_536, 65_536, 65_536, 15_104, 65_536, 65_536, 65_536, 15_104, 20_865];
    const pieces: Buffer[] = lengths.map((length) => Buffer.alloc(length));
    const [head, ...others] = gather(pieces);
    expect(head).toEqual(pieces[0]);
    expect(others.map((chunk) => pieces.indexOf(chunk))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('need a small multiple of their length in pieces of one byte', () => {
    const byte = Buffer.from('x');
    expectFew(gather(Array.from({ length: MESSAGE_BYTES }, () => byte)), MESSAGE_BYTES);
  });

  it('can be joined if blocks and large pieces alternate, and large pieces stay whole', () => {
    const gathered = new Gathered();
    const large = Buffer.alloc(2 * 1024 * 1024, 'l');
    const bytes: Buffer[] = [];
    for (let count = 0; count < 20_000; count++) bytes.push(Buffer.from(String(count).padStart(20, '.')));
    bytes.splice(15_000, 0, large);
    for (const piece of bytes) gathered.add(piece);
    expect(gathered.join().equals(Buffer.concat(bytes))).toBe(true);
    expect(large).toHaveLength(2 * 1024 * 1024);
  });

  it.each([1, 100, 4_096, 20_000])('do not pin reads of which they use %i bytes each', (pieceBytes) => {
    const chunks = gather(fromReads(pieceBytes, 50));
    // Node allocates small blocks from a shared pool.
    expect(pinned(chunks)).toBeLessThanOrEqual(3 * (50 * pieceBytes + READ_BYTES));
  });

  it('do not pin blocks that large pieces left empty', () => {
    const pieces = Array.from({ length: 100 }, () => [Buffer.from('x'), Buffer.alloc(5 * 1024)]).flat();
    expect(pinned(gather(pieces))).toBeLessThanOrEqual(3 * 100 * 5 * 1024);
  });
});

describe('a message that arrives byte by byte', () => {
  const byte = Buffer.from('x');

  it('has few chunks if it is a line', () => {
    const lines: (readonly Buffer[])[] = [];
    const splitter = new LineSplitter(MESSAGE_BYTES, {
      line: (chunks) => lines.push(chunks),
      tooLong: () => expect.unreachable(),
    });
    for (let sent = 0; sent < MESSAGE_BYTES; sent++) splitter.push(byte);
    splitter.push(Buffer.from('\n'));
    expect(lines).toHaveLength(1);
    expectFew(lines[0]!, MESSAGE_BYTES);
  });

  it.each(['data:x\n', 'data: x'])('has few chunks if it is an event of many %j', (text) => {
    const events: (readonly Buffer[])[] = [];
    const parser = new SseParser(MESSAGE_BYTES, {
      event: ({ data }) => events.push(data),
      tooLarge: () => expect.unreachable(),
    });
    const bytes = Array.from(text, (character) => Buffer.from(character));
    const count = 30_000;
    for (let sent = 0; sent < count; sent++) for (const piece of bytes) parser.push(piece);
    parser.push(Buffer.from('\n\n'));
    expect(events).toHaveLength(1);
    expectFew(events[0]!, text.endsWith('\n') ? 2 * count - 1 : count * text.length - 'data: '.length);
  });

  it('keeps its last bytes if it is too long', () => {
    const ends: string[] = [];
    const splitter = new LineSplitter(10, {
      line: () => expect.unreachable(),
      tooLong: () => {},
      skipped: (head, tail) => ends.push(head.toString(), tail.toString()),
    });
    const text = Array.from({ length: 1_000 }, (_, index) => String(index)).join(' ');
    for (const character of text) splitter.push(Buffer.from(character));
    splitter.push(Buffer.from('\n'));
    expect(ends).toEqual([text.slice(0, 11), text.slice(-256)]);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameSplitter } from './streams.ts';

type Stream = 'stdout' | 'stderr';

const frames = fc.array(
  fc.record({
    stream: fc.constantFrom<Stream>('stdout', 'stderr'),
    content: fc.uint8Array({ maxLength: 40 }),
  }),
);

describe('the frames of an attached container', () => {
  it('are split, however they arrive', () => {
    fc.assert(
      fc.property(frames, fc.infiniteStream(fc.integer({ min: 1, max: 20 })), (sent, sizes) => {
        const received = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
        const splitter = new FrameSplitter({
          stdout: (bytes) => received.stdout.push(bytes),
          stderr: (bytes) => received.stderr.push(bytes),
        });
        let rest = Buffer.concat(sent.map(frame));
        while (rest.length > 0) {
          const size: number = sizes.next().value;
          // A copy, because each chunk of a socket has separate memory.
          splitter.push(Buffer.from(rest.subarray(0, size)));
          rest = rest.subarray(size);
        }
        for (const stream of ['stdout', 'stderr'] as const) {
          const expected = Buffer.concat(
            sent.filter((one) => one.stream === stream).map((one) => one.content),
          );
          expect(Buffer.concat(received[stream]).equals(expected)).toBe(true);
        }
      }),
    );
  });

  it('are passed on in order, before they are complete', () => {
    const parts: string[] = [];
    const splitter = new FrameSplitter({
      stdout: (bytes) => parts.push(`out ${bytes}`),
      stderr: (bytes) => parts.push(`err ${bytes}`),
    });
    const bytes = Buffer.concat([
      frame({ stream: 'stderr', content: Buffer.from('first') }),
      frame({ stream: 'stdout', content: Buffer.from('second') }),
    ]);
    splitter.push(bytes.subarray(0, -3));
    expect(parts).toEqual(['err first', 'out sec']);
    splitter.push(bytes.subarray(-3));
    expect(parts).toEqual(['err first', 'out sec', 'out ond']);
  });
});

function frame({ stream, content }: { stream: Stream; content: Uint8Array }): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream === 'stdout' ? 1 : 2;
  header.writeUInt32BE(content.length, 4);
  return Buffer.concat([header, content]);
}

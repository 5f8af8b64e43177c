import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { expect, it } from 'vitest';
import { LineSplitter } from '../protocol/lines.ts';
import { LineReader } from './line-pipe.ts';

const COUNT = 10_000;
const numbers = Array.from({ length: COUNT }, (_, index) => String(index));

/** Reads lines and notes the event loop turn of each. */
function open(heard: (line: string) => void = () => {}) {
  const lines: string[] = [];
  const turns: number[] = [];
  let turn = 0;
  const stream = new PassThrough();
  const reader = new LineReader(
    stream,
    new LineSplitter(1_000, {
      line: ([first]) => {
        lines.push(first!.toString());
        turns[turn] = (turns[turn] ?? 0) + 1;
        heard(lines.at(-1)!);
      },
      tooLong: () => expect.unreachable(),
    }),
  );
  const nextTurn = async () => {
    await new Promise(setImmediate);
    turn++;
  };
  return { lines, turns, stream, reader, nextTurn };
}

it('handles a limited number of lines per turn, in order, however the stream is split', async () => {
  for (const pieces of [
    [numbers],
    [numbers.slice(0, 300), numbers.slice(300, 5_000), numbers.slice(5_000)],
  ]) {
    const { lines, turns, stream, nextTurn } = open();
    for (const piece of pieces) stream.write(`${piece.join('\n')}\n`);
    while (lines.length < COUNT) await nextTurn();
    expect(lines).toEqual(numbers);
    expect(Math.max(...turns.map((count) => count ?? 0))).toBeLessThanOrEqual(1_000);
    stream.write('last\n');
    while (lines.length === COUNT) await nextTurn();
    expect(lines.at(-1)).toBe('last');
  }
});

it('delivers the rest of an ended stream at once', async () => {
  const { lines, stream, reader } = open();
  stream.on('end', () => reader.end());
  stream.end(`${numbers.join('\n')}\nunfinished`);
  while (lines.length === 0) await new Promise((resolve) => process.nextTick(resolve));
  expect(lines.length).toBeLessThan(COUNT);
  // Node does this when the process exits.
  stream.resume();
  await finished(stream);
  expect(lines).toEqual([...numbers, 'unfinished']);
});

it('stops reading after the stream is detached', async () => {
  const { lines, stream, reader, nextTurn } = open((line) => line === '700' && reader.detach());
  stream.write(`${numbers.join('\n')}\n`);
  for (let count = 0; count < 50; count++) await nextTurn();
  expect(lines.length).toBeLessThanOrEqual(1_000);
});

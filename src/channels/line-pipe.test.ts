import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { expect, it } from 'vitest';
import { LineSplitter } from '../protocol/lines.ts';
import { LineReader } from './line-pipe.ts';

const COUNT = 10_000;
const numbers = Array.from({ length: COUNT }, (_, index) => String(index));

/** Reads lines, and notes in which turn of the event loop each came. */
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

it('lines of a stream are dealt with so many in a turn, in their order, however they are cut', async () => {
  for (const pieces of [
    [numbers],
    [numbers.slice(0, 300), numbers.slice(300, 5_000), numbers.slice(5_000)],
  ]) {
    const { lines, turns, stream, nextTurn } = open();
    for (const piece of pieces) stream.write(`${piece.join('\n')}\n`);
    while (lines.length < COUNT) await nextTurn();
    expect(lines).toEqual(numbers);
    expect(Math.max(...turns.map((count) => count ?? 0))).toBeLessThanOrEqual(1_000);
    // What comes later is read as before.
    stream.write('last\n');
    while (lines.length === COUNT) await nextTurn();
    expect(lines.at(-1)).toBe('last');
  }
});

it('what is left of a stream that is over comes at once', async () => {
  const { lines, stream, reader } = open();
  stream.on('end', () => reader.end());
  stream.end(`${numbers.join('\n')}\nunfinished`);
  while (lines.length === 0) await new Promise((resolve) => process.nextTick(resolve));
  expect(lines.length).toBeLessThan(COUNT);
  // As Node does when the process at the other end has ended.
  stream.resume();
  await finished(stream);
  expect(lines).toEqual([...numbers, 'unfinished']);
});

it('a stream that is left is read no more', async () => {
  const { lines, stream, reader, nextTurn } = open((line) => line === '700' && reader.detach());
  stream.write(`${numbers.join('\n')}\n`);
  for (let count = 0; count < 50; count++) await nextTurn();
  expect(lines.length).toBeLessThanOrEqual(1_000);
});

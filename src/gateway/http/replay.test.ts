import { describe, expect, it } from 'vitest';
import { Replay } from './replay.ts';

describe('events that are kept', () => {
  it('hold no more memory than they have bytes', () => {
    const replay = new Replay();
    const read = Buffer.alloc(64 * 1024, 'x');
    const whole = Buffer.alloc(1_000, 'y');
    replay.add({ stream: 1, sequence: 1, message: [read.subarray(10, 20), whole] });
    const [kept] = replay.after(1, 0);
    expect(Buffer.concat([...kept!.message]).toString()).toBe('x'.repeat(10) + 'y'.repeat(1_000));
    expect(kept!.message.map(({ buffer }) => buffer.byteLength)).toEqual([10, whole.buffer.byteLength]);
  });
});

import { describe, expect, it } from 'vitest';
import { HostedLog, type LogLine } from './log.ts';

const asItIs = (text: string) => text;

describe('the log of a hosted server', () => {
  it('keeps the last 1,000 lines in order', () => {
    const log = new HostedLog(asItIs);
    log.add('first');
    expect(log.lines.map(({ line }) => line)).toEqual(['first']);
    for (let count = 1; count <= 2_500; count++) log.add(`line ${count}`);
    expect(log.lines.map(({ line }) => line)).toEqual(
      Array.from({ length: 1_000 }, (_, index) => `line ${1_501 + index}`),
    );
  });

  it('records the time of each line', () => {
    const log = new HostedLog(asItIs);
    const before = Date.now();
    log.add('now');
    const at = log.lines[0]!.at.getTime();
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(Date.now());
  });

  it('masks before it truncates, so that no part of a secret is left', () => {
    const log = new HostedLog((text) => text.replaceAll('hunter2', '***'));
    const shown = log.add(`${'x'.repeat(1_997)}hunter2 and more`);
    expect(shown).toBe(`${'x'.repeat(1_997)}*** …`);
    expect(log.lines[0]!.line).toBe(shown);
  });

  it('notifies each subscriber of new lines until it unsubscribes', () => {
    const log = new HostedLog(asItIs);
    const seen: string[] = [];
    const listener = ({ line }: LogLine) => seen.push(line);
    log.add('before');
    const stopFirst = log.subscribe(listener);
    const stopSecond = log.subscribe(listener);
    log.add('both');
    stopFirst();
    stopFirst();
    log.add('one');
    stopSecond();
    log.add('none');
    expect(seen).toEqual(['both', 'both', 'one']);
  });
});

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import { FailureLog } from './log.ts';

const error = new SwitchboardError('server_unavailable', 'Server "box" is not available');
const line = 'a call failed: Server "box" is not available';

beforeEach(() => void vi.useFakeTimers({ now: 0 }));
afterEach(() => void vi.useRealTimers());

function record() {
  const lines: string[] = [];
  const log = new FailureLog('calls', (text) => lines.push(text));
  const fail = (times: number) => {
    for (let call = 0; call < times; call++) log.add(error);
    return lines.splice(0);
  };
  const after = (ms: number) => {
    vi.advanceTimersByTime(ms);
    return lines.splice(0);
  };
  return { log, lines, fail, after };
}

it('logs the first five of many failed calls, and counts the others every 10 s', () => {
  const { fail, after } = record();
  expect(fail(46)).toEqual(Array(5).fill(line));
  expect(after(9_999)).toEqual([]);
  expect(after(1)).toEqual(['… and 41 more calls failed in the last 10 s']);
  expect(fail(1)).toEqual([line]);
  expect(after(60_000)).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

it('logs the count earlier when it is flushed', () => {
  const { log, lines, fail, after } = record();
  fail(7);
  after(2_500);
  log.flush();
  log.flush();
  expect(lines.splice(0)).toEqual(['… and 2 more calls failed in the last 3 s']);
  expect(fail(3)).toEqual([]);
  expect(after(7_500)).toEqual(['… and 3 more calls failed in the last 10 s']);
});

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { statusError } from './errors.ts';

const url = new URL('http://a.example/mcp');
const waitFor = (retryAfter: string) => statusError(503, url, '', { retryAfter }).data.retryAfterMs;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse('2026-11-18T09:00:00Z') });
});
afterEach(() => vi.useRealTimers());

it.each([
  ['7', 7_000],
  ['0', 0],
  ['Wed, 18 Nov 2026 09:00:30 GMT', 30_000],
  ['Wednesday, 18-Nov-26 09:00:30 GMT', 30_000],
  ['Wed Nov 18 09:00:30 2026', 30_000],
  ['Wed, 18 Nov 2026 08:00:00 GMT', 0],
])('a Retry-After of %s is %i ms', (value, expected) => {
  expect(waitFor(value)).toBe(expected);
});

it.each(['-5', '1.5', '2030-01-01', 'soon', 'Wed, 99 Nov 2026 09:00:30 GMT', ''])(
  'a Retry-After of "%s" is ignored',
  (value) => {
    const error = statusError(503, url, '', { retryAfter: value });
    expect(error.data).toEqual({ status: 503 });
    expect(error.message).not.toContain('again');
  },
);

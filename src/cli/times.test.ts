import { expect, it } from 'vitest';
import { agoText, duration, expiry, expiryText, moment, untilText } from './times.ts';

it('a time is absolute, or relative to now', () => {
  expect(moment('2030-01-31T12:00:00Z')).toBe('2030-01-31T12:00:00.000Z');
  expect(moment('2030-01-31T12:00:00+02:00')).toBe('2030-01-31T10:00:00.000Z');
  const ago = { '90s': 90_000, '15m': 900_000, '2h': 7_200_000, '7d': 604_800_000 };
  for (const [text, milliseconds] of Object.entries(ago)) {
    const before = Date.now();
    const then = Date.parse(moment(text)) + milliseconds;
    expect(then).toBeGreaterThanOrEqual(before);
    expect(then).toBeLessThanOrEqual(Date.now());
  }
});

it.each(['', 'yesterday', '1w', '-1h', '1', '2030-99-99', '999999999d'])('%j is not a time', (text) => {
  expect(() => moment(text)).toThrow('Use a time such as');
});

it('a duration has a unit, unless it is 0', () => {
  expect([duration('0'), duration('90s'), duration('24h')]).toEqual([0, 90_000, 86_400_000]);
  for (const text of ['', '1', '-1h', '1.5h', 'soon']) expect(() => duration(text)).toThrow('Use a duration');
});

it('an expiry is a time from now, a date, or never', () => {
  expect(expiry('never')).toBe('never');
  expect(expiry('2130-01-31')).toBe('2130-01-31T00:00:00.000Z');
  const before = Date.now();
  expect(Date.parse(expiry('90d')) - 90 * 86_400_000).toBeGreaterThanOrEqual(before);
  expect(() => expiry('2020-01-31')).toThrow('in the past');
  expect(() => expiry('0d')).toThrow('in the past');
  for (const text of ['', 'soon', '90', '2130-99-99', '999999999d'])
    expect(() => expiry(text)).toThrow('Use a time from now');
});

it('times are shown as distances', () => {
  const now = new Date('2030-01-01T00:00:00Z');
  const at = (seconds: number) => new Date(now.getTime() + seconds * 1_000).toISOString();
  expect([60, 300, 3 * 3_600, 30 * 3_600, 90 * 86_400].map((seconds) => untilText(at(seconds), now))).toEqual(
    [...['in 60 s', 'in 5 min', 'in 3 h', 'in 30 h', 'in 90 days']],
  );
  expect([untilText(at(0), now), untilText(null, now)]).toEqual(['expired', 'never']);
  expect([agoText(at(-200), now), agoText(null, now)]).toEqual(['3 min ago', 'never']);
  expect(expiryText(at(86_400 * 3), now)).toMatch(/^2030-01-0[34] \d\d:00:00 \(in 3 days\)$/);
});

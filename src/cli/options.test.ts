import { expect, it } from 'vitest';
import { daysOrNever, header, moment, onOrOff, pairs, wholeNumber } from './options.ts';

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

it('pairs are collected, and the last value of a name wins', () => {
  const env = pairs('--env');
  expect(env('A=1', env('B=x=y', env('A=0')))).toEqual({ A: '1', B: 'x=y' });
  expect(env('EMPTY=')).toEqual({ EMPTY: '' });
});

it.each([
  ['Authorization=Bearer a:b=c', { Authorization: 'Bearer a:b=c' }],
  ['Authorization: Bearer a:b=c', { Authorization: 'Bearer a:b=c' }],
  ['X-Key:value', { 'X-Key': 'value' }],
])('the header %j is parsed', (text, expected) => {
  expect(header(text)).toEqual(expected);
});

it('an invalid pair is rejected without being shown', () => {
  for (const read of [pairs('--env'), header]) {
    expect(() => read('hunter2')).toThrow(/^--(env|header) takes NAME=value\.$/);
    expect(() => read('=hunter2')).toThrow('takes NAME=value');
  }
});

it('numbers and switches are parsed', () => {
  expect(wholeNumber('12')).toBe(12);
  expect(daysOrNever('30')).toBe(30);
  expect(daysOrNever('never')).toBe('never');
  expect([onOrOff('on'), onOrOff('off')]).toEqual([true, false]);
  for (const text of ['', '-1', '1.5', 'x', '1e3']) expect(() => wholeNumber(text)).toThrow('whole number');
  for (const text of ['', '0', '-1', 'ever']) expect(() => daysOrNever(text)).toThrow('number of days');
  for (const text of ['', 'true', 'ON']) expect(() => onOrOff(text)).toThrow('"on" or "off"');
});

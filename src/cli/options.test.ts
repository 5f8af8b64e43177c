import { expect, it } from 'vitest';
import { daysOrNever, header, onOrOff, pairs, wholeNumber } from './options.ts';

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

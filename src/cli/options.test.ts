import { expect, it } from 'vitest';
import {
  addressRange,
  daysOrNever,
  header,
  numberUpTo,
  onOrOff,
  pairs,
  publicUrl,
  wholeNumber,
} from './options.ts';

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

it('a public address has no path', () => {
  expect(publicUrl('https://sb.example')).toBe('https://sb.example');
  expect(publicUrl('http://sb.example:8080/')).toBe('http://sb.example:8080');
  for (const text of [
    '',
    'sb.example',
    'ftp://sb.example',
    'https://sb.example/mcp',
    'https://me@sb.example',
  ])
    expect(() => publicUrl(text)).toThrow('an address without a path');
});

it('proxies are addresses and ranges', () => {
  expect(addressRange('10.0.0.0/8', addressRange('::1'))).toEqual(['::1', '10.0.0.0/8']);
  for (const text of ['', 'proxy', '10.0.0.0/33', '::/129', '10.0.0.0/8/8', '10.0.0.0/'])
    expect(() => addressRange(text)).toThrow('an address or a range');
});

it('numbers from 1 on', () => {
  expect(numberUpTo(10)('10')).toBe(10);
  for (const text of ['', '0', '11', '-1', '1.5', 'x']) {
    expect(() => numberUpTo(10)(text)).toThrow('Use a whole number from 1 to 10.');
  }
});

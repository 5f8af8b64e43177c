import { networkInterfaces } from 'node:os';
import { expect, it } from 'vitest';
import { isLoopback, isOnThisMachine, isOwnNumber, ownAddressesOf } from './addresses.ts';

it.each([
  ['http://127.0.0.1:7400', ['127.0.0.1']],
  ['https://127.1.2.3', ['127.1.2.3']],
  ['http://[::1]:7400', ['::1']],
])('%s is one address of this machine', (url, addresses) => {
  expect(ownAddressesOf(url)).toEqual(addresses);
  expect([isOnThisMachine(url), isOwnNumber(url), isLoopback(url)]).toEqual([true, true, true]);
});

it('localhost may be several', () => {
  const url = 'http://localhost:7400';
  expect(ownAddressesOf(url)).toEqual(['127.0.0.1', '::1']);
  expect([isOnThisMachine(url), isOwnNumber(url), isLoopback(url)]).toEqual([true, false, true]);
});

it.each(['https://sb.example', 'http://192.0.2.1', 'http://[2001:db8::1]', 'http://127.0.0.1.sb.example'])(
  '%s is elsewhere',
  (url) => {
    expect(ownAddressesOf(url)).toEqual([]);
    expect([isOnThisMachine(url), isOwnNumber(url)]).toEqual([false, false]);
  },
);

it('other addresses of this machine are its own', () => {
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  for (const { address, family } of own.filter(({ internal, scopeid = 0 }) => !internal && scopeid === 0)) {
    const url = `http://${family === 'IPv6' ? `[${address}]` : address}:7400`;
    expect([isOnThisMachine(url), isOwnNumber(url), isLoopback(url)]).toEqual([true, true, false]);
  }
});

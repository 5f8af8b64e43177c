import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { isDirectAndLocal, TrustedProxies } from './client-address.ts';

type Headers = Record<string, string>;

function request(remoteAddress: string | undefined, headers: Headers = {}, localAddress = '10.0.0.1') {
  return { headers, socket: { remoteAddress, localAddress } } as unknown as IncomingMessage;
}

/** Of a request that comes from a trusted proxy of this machine. */
function clientBehind(headers: Headers, proxies = ['127.0.0.1']): string | undefined {
  return new TrustedProxies(proxies).clientOf(request('127.0.0.1', headers));
}

const chain = (list: string) => ({ 'x-forwarded-for': list });

describe('the address of a client', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::FFFF:192.0.2.7', '192.0.2.7'],
    ['2001:db8::7', '2001:db8::7'],
    ['fe80::7%eth0', 'fe80::7'],
    [undefined, undefined],
  ])('without proxies is that of the connection: %s', (peer, address) => {
    expect(new TrustedProxies([]).clientOf(request(peer))).toBe(address);
  });

  it.each([chain('198.51.100.1'), { forwarded: 'for=198.51.100.1' }, { 'x-real-ip': '198.51.100.1' }])(
    'is not changed by headers of a peer that is no trusted proxy: %o',
    (headers) => {
      for (const proxies of [[], ['127.0.0.1', '10.0.0.0/8', '2001:db8::/32']]) {
        expect(new TrustedProxies(proxies).clientOf(request('192.0.2.7', headers))).toBe('192.0.2.7');
      }
      expect(new TrustedProxies(['127.0.0.1']).clientOf(request(undefined, headers))).toBeUndefined();
    },
  );

  it.each([
    ['a proxy that sends none', [], '127.0.0.1'],
    ['one proxy', ['192.0.2.7'], '192.0.2.7'],
    ['a chain of trusted proxies', ['192.0.2.7', '10.1.2.3', '10.9.9.9'], '192.0.2.7'],
    ['what the client invented before the proxies', ['203.0.113.1', '192.0.2.7', '10.9.9.9'], '192.0.2.7'],
    ['a trusted address that the client invented', ['127.0.0.1', '10.0.0.1', '192.0.2.7'], '192.0.2.7'],
    ['a client that is a trusted proxy itself', ['10.1.2.3'], '10.1.2.3'],
  ])('is found in the chain of %s', (_what, hops, address) => {
    const headers: Headers = hops.length === 0 ? {} : chain(hops.join(', '));
    expect(clientBehind(headers, ['127.0.0.1', '10.0.0.0/8'])).toBe(address);
  });

  it('is the last one that is known if the chain is broken', () => {
    for (const hop of [
      'unknown',
      '_hidden',
      '',
      ' ',
      'evil.example',
      '1.2.3',
      '1.2.3.4.5',
      '[::1',
      '%',
      '1.2.3.4%lo',
    ]) {
      expect(clientBehind(chain(`192.0.2.7, ${hop}`)), hop).toBe('127.0.0.1');
      expect(clientBehind(chain(`192.0.2.7, ${hop}, 10.0.0.1`), ['127.0.0.1', '10.0.0.0/8'])).toBe(
        '10.0.0.1',
      );
    }
    for (const list of ['', ',', ',,,']) expect(clientBehind(chain(list))).toBe('127.0.0.1');
  });

  it.each([
    ['192.0.2.7:4711', '192.0.2.7'],
    ['[192.0.2.7]:4711', '192.0.2.7'],
    ['[2001:db8::7]', '2001:db8::7'],
    ['[2001:db8::7]:4711', '2001:db8::7'],
    ['2001:db8::7', '2001:db8::7'],
    ['2001:0DB8:0:0::0007', '2001:db8::7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::ffff:c000:207', '192.0.2.7'],
    ['0:0:0:0:0:ffff:192.0.2.7', '192.0.2.7'],
    ['fe80::7%eth0', 'fe80::7'],
    ['\t192.0.2.7 ', '192.0.2.7'],
  ])('is spelled in one way: %s', (hop, address) => {
    expect(clientBehind(chain(hop))).toBe(address);
  });

  it('is found behind IPv6 and IPv4-mapped proxies, however they are spelled', () => {
    const headers = chain('192.0.2.7');
    const pairs = [
      ['::1', '::1'],
      ['2001:DB8:0::1', '2001:db8::1'],
      ['2001:db8::/32', '2001:db8:ffff::1'],
      ['127.0.0.1', '::ffff:127.0.0.1'],
      ['::ffff:10.0.0.1', '10.0.0.1'],
      ['::ffff:10.0.0.0/104', '::ffff:10.1.2.3'],
      ['10.0.0.0/8', '::ffff:10.1.2.3'],
      ['fe80::1', 'fe80::1%eth0'],
      ['0.0.0.0/0', '198.51.100.1'],
    ];
    for (const [proxy, peer] of pairs) {
      expect(new TrustedProxies([proxy!]).clientOf(request(peer, headers)), proxy).toBe('192.0.2.7');
    }
    expect(new TrustedProxies(['10.0.0.0/8']).clientOf(request('11.0.0.1', headers))).toBe('11.0.0.1');
  });

  it('is found in a Forwarded header', () => {
    const shown = {
      'for=192.0.2.7': '192.0.2.7',
      'For="192.0.2.7:4711"; proto=https; by=203.0.113.43': '192.0.2.7',
      'by=203.0.113.43;for="[2001:db8::7]:4711"': '2001:db8::7',
      'for=203.0.113.1, for=192.0.2.7': '192.0.2.7',
      'for=203.0.113.1, for=192.0.2.7;proto=http , for="10.1.2.3"': '192.0.2.7',
      'for=192.0.2.7, proto=https': '127.0.0.1',
      'for=192.0.2.7, for=unknown': '127.0.0.1',
      'xfor=192.0.2.7': '127.0.0.1',
      '': '127.0.0.1',
    };
    for (const [forwarded, address] of Object.entries(shown)) {
      expect(clientBehind({ forwarded }, ['127.0.0.1', '10.0.0.0/8']), forwarded).toBe(address);
    }
  });

  it('does not come from a Forwarded header of the client if the proxy sends X-Forwarded-For', () => {
    expect(clientBehind({ ...chain('192.0.2.7'), forwarded: 'for=203.0.113.1' })).toBe('192.0.2.7');
  });

  it('is looked for in the last 32 hops', () => {
    const hops = (count: number) => Array.from({ length: count }, (_, index) => `10.0.0.${index}`);
    const proxies = ['127.0.0.1', '10.0.0.0/8'];
    expect(clientBehind(chain(['192.0.2.7', ...hops(31)].join()), proxies)).toBe('192.0.2.7');
    expect(clientBehind(chain(['192.0.2.7', ...hops(32)].join()), proxies)).toBe('10.0.0.0');
    expect(
      clientBehind({ forwarded: ['192.0.2.7', ...hops(32)].map((hop) => `for=${hop}`).join() }, proxies),
    ).toBe('10.0.0.0');
  });
});

describe('a request from this machine', () => {
  it.each(['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1', '10.0.0.1', '::ffff:10.0.0.1'])(
    'comes from %s',
    (peer) => {
      expect(isDirectAndLocal(request(peer))).toBe(true);
      expect(isDirectAndLocal(request(peer, { host: 'sb.example', authorization: 'Bearer x' }))).toBe(true);
    },
  );

  it.each(['10.0.0.2', '2001:db8::1', '::ffff:10.0.0.2', '128.0.0.1', undefined])(
    'does not come from %s',
    (peer) => {
      expect(isDirectAndLocal(request(peer))).toBe(false);
    },
  );

  it.each([
    { 'x-forwarded-for': '127.0.0.1' },
    { 'x-forwarded-for': '' },
    { 'x-forwarded-host': 'sb.example' },
    { 'x-forwarded-proto': 'https' },
    { 'x-real-ip': '127.0.0.1' },
    { forwarded: 'for=127.0.0.1' },
    { via: '1.1 proxy' },
    ...[
      ...['x-forwarded', 'client-ip', 'x-cluster-client-ip', 'x-original-forwarded-for', 'fastly-client-ip'],
      ...['cf-ray', 'x-envoy-external-address', 'true-client-ip'],
    ].map((header) => ({ [header]: '127.0.0.1' })),
  ])('did not come through a proxy, trusted or not: %o', (headers: object) => {
    expect(isDirectAndLocal(request('127.0.0.1', headers as Headers))).toBe(false);
  });
});

import { describe, expect, it } from 'vitest';
import { proxyFor, proxyPasswords, throughProxy } from './proxy.ts';

const proxy = 'http://proxy.example:3128';
const labelFor = (url: string, environment: Record<string, string>) =>
  proxyFor(new URL(url), environment)?.label;

describe('the proxy of a server', () => {
  it.each([
    ['http://a.example/', { http_proxy: proxy }, proxy],
    ['https://a.example/', { https_proxy: proxy }, proxy],
    ['https://a.example/', { HTTPS_PROXY: proxy }, proxy],
    ['https://a.example/', { http_proxy: proxy }, undefined],
    ['http://a.example/', { all_proxy: proxy }, proxy],
    ['http://a.example/', { ALL_PROXY: proxy, http_proxy: 'other:1' }, 'http://other:1'],
    ['http://a.example/', { HTTP_PROXY: 'other:1', http_proxy: proxy }, proxy],
    ['http://a.example/', { http_proxy: ' ', HTTP_PROXY: proxy }, proxy],
    ['http://a.example/', { http_proxy: 'proxy.example' }, 'http://proxy.example:80'],
    ['http://a.example/', { http_proxy: 'https://proxy.example' }, 'https://proxy.example:443'],
    ['http://a.example/', { http_proxy: 'http://[::2]:8080' }, 'http://[::2]:8080'],
    ['http://localhost:8080/', { http_proxy: proxy }, undefined],
    ['http://x.localhost/', { http_proxy: proxy }, undefined],
    ['http://127.1.2.3/', { http_proxy: proxy }, undefined],
    ['http://[::1]/', { http_proxy: proxy }, undefined],
    ['http://a.example/', {}, undefined],
  ])('%s with %j is %s', (url, environment, expected) => {
    expect(labelFor(url, environment as Record<string, string>)).toBe(expected);
  });

  it.each([
    ['*', 'http://a.example/', false],
    ['a.example', 'http://a.example/', false],
    ['example', 'http://a.example/', false],
    ['.example', 'http://a.example/', false],
    ['*.example', 'http://a.example/', false],
    ['A.Example', 'http://a.EXAMPLE/', false],
    ['b.example, a.example', 'http://a.example/', false],
    ['b.example a.example', 'http://a.example/', false],
    ['a.example:80', 'http://a.example/', false],
    ['a.example:8080', 'http://a.example:8080/', false],
    ['a.example:8080', 'http://a.example/', true],
    ['xample', 'http://a.example/', true],
    ['10.0.0.0/8', 'http://10.1.2.3/', false],
    ['10.0.0.0/8', 'http://11.1.2.3/', true],
    ['10.0.0.0/8', 'http://a.example/', true],
    ['10.0.0.0/99', 'http://10.1.2.3/', true],
    ['fd00::/8', 'http://[fd12::1]/', false],
    ['10.1.2.3', 'http://10.1.2.3/', false],
    ['2.3', 'http://10.1.2.3/', true],
    ['[fd12::1]:80', 'http://[fd12::1]/', false],
    [', ,', 'http://a.example/', true],
  ])('with no_proxy %j: %s uses it: %s', (no_proxy, url, isUsed) => {
    expect(labelFor(url, { http_proxy: proxy, no_proxy })).toBe(isUsed ? proxy : undefined);
  });

  it.each(['socks5://proxy:1080', 'ftp://proxy', 'http://', 'http://a b/'])(
    'cannot be %j, and the error hides a possible password',
    (address) => {
      expect(() => labelFor('http://a.example/', { http_proxy: address })).toThrow(
        'The variable http_proxy is not the URL of a proxy: use http://host:port or https://host:port.',
      );
    },
  );

  it('receives its credentials and the absolute URL', () => {
    const url = new URL('http://a.example:8080/mcp?x=1');
    const found = proxyFor(url, { http_proxy: 'http://me:p%40ssw0rd@proxy.example' })!;
    expect(found).toMatchObject({ label: 'http://proxy.example:80' });
    const head = 'POST /mcp?x=1 HTTP/1.1\r\nhost: a.example:8080\r\n';
    expect(throughProxy(head, url, found)).toBe(
      `POST http://a.example:8080/mcp?x=1 HTTP/1.1\r\nproxy-authorization: Basic ${btoa('me:p@ssw0rd')}\r\nhost: a.example:8080\r\n`,
    );
    expect(
      proxyPasswords({ HTTPS_PROXY: 'http://me:p%40ssw0rd@proxy.example', http_proxy: 'nothing' }),
    ).toEqual(['p%40ssw0rd', 'p@ssw0rd']);
  });

  it('has its password recognized in every accepted spelling', () => {
    expect(proxyPasswords({ HTTP_PROXY: ' user:hunter2secret@127.0.0.1:1234 ' })).toEqual(['hunter2secret']);
    expect(proxyPasswords({ ALL_PROXY: 'HTTPS://user:hunter|secret@127.0.0.1' })).toContain('hunter|secret');
  });
});

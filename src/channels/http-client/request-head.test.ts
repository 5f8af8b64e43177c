import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SwitchboardError } from '../../errors.ts';
import { requestHead } from './request-head.ts';

function linesFor(
  url: string,
  configured: Record<string, string> = {},
  own: Record<string, string> = {},
): string[] {
  const target = new URL(url);
  const [, ...lines] = requestHead('GET', target, target.pathname, configured, own).split('\r\n');
  return lines.slice(0, -1);
}

describe('the head of a request', () => {
  it('contains the method, the path and the host', () => {
    expect(requestHead('POST', new URL('http://server.test/mcp?a=b'), '/mcp?a=b', {}, {})).toBe(
      'POST /mcp?a=b HTTP/1.1\r\nhost: server.test\r\n',
    );
  });

  it.each([
    ['http://server.test:80/', 'server.test'],
    ['https://server.test:443/', 'server.test'],
    ['http://server.test:443/', 'server.test:443'],
    ['http://[::1]:7400/', '[::1]:7400'],
    ['https://[2001:db8::1]/', '[2001:db8::1]'],
    ['http://bücher.test/', 'xn--bcher-kva.test'],
  ])('for %s has the host %s', (url, host) => {
    expect(linesFor(url)).toEqual([`host: ${host}`]);
  });

  it('takes the user and password from the URL, unless a header is configured', () => {
    const basic = `Basic ${Buffer.from('Ann:a b%').toString('base64')}`;
    expect(linesFor('http://Ann:a%20b%25@server.test/')).toContain(`authorization: ${basic}`);
    expect(linesFor('http://Ann@server.test/', { Authorization: 'Bearer x' })).toEqual([
      'host: server.test',
      'authorization: Bearer x',
    ]);
  });

  it('contains each configured header once, after ours', () => {
    expect(
      linesFor('http://a.test/', { 'X-Key': 'k', Accept: 'image/png' }, { accept: 'text/event-stream' }),
    ).toEqual(['host: a.test', 'x-key: k', 'accept: text/event-stream']);
  });

  it('ignores configured connection and framing headers', () => {
    const configured = {
      Connection: 'close',
      'Content-Length': '5',
      'Transfer-Encoding': 'chunked',
      'Accept-Encoding': 'gzip',
    };
    expect(linesFor('http://a.test/', configured)).toEqual(['host: a.test']);
  });

  it('never contains an injected line', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (name, value) => {
        let lines: string[];
        try {
          lines = linesFor('http://a.test/', { [name]: value });
        } catch (error) {
          expect((error as SwitchboardError).code).toBe('invalid_config');
          return;
        }
        expect(lines.length).toBeLessThanOrEqual(2);
        expect(lines.join('')).not.toMatch(/[\r\n\0]/);
      }),
    );
  });

  it.each(['a\r\nb', 'a\nb', 'a\0b', 'päßwörd →'])('rejects the value %j without showing it', (value) => {
    const attempt = () => linesFor('http://a.test/', { 'X-Key': value });
    expect(attempt).toThrow(SwitchboardError);
    expect(attempt).toThrow(/"x-key"/);
    expect(attempt).not.toThrow(value);
  });
});

import { describe, expect, it } from 'vitest';
import { HeadReader, type ResponseHead } from './response-head.ts';

function head(lines: string): ResponseHead {
  return new HeadReader().read(`HTTP/1.1 200 OK\r\n${lines}`);
}

describe('the head of a response', () => {
  it('gives the content type in lower case', () => {
    expect(head('Content-Type: Text/Event-Stream; charset=utf-8').contentType).toBe(
      'text/event-stream; charset=utf-8',
    );
    expect(head('x: y').contentType).toBe('');
  });

  it('gives the target of a redirect', () => {
    expect(head('Location: /there').location).toBe('/there');
  });

  it('may repeat the same length', () => {
    expect(head('content-length: 3\r\ncontent-length: 3').bodyBytes).toBe(3);
    expect(head('content-length: 3, 3').bodyBytes).toBe(3);
  });

  const length = 'content-length: 0\r\n';
  it.each([
    ['no header', `${length}x: y`, 3_000],
    ['a timeout', `${length}Keep-Alive: timeout=5`, 3_000],
    ['a long timeout', `${length}keep-alive: timeout=600, max=100`, 30_000],
    ['a timeout as last parameter', `${length}keep-alive: max=100, timeout=11`, 9_000],
    ['a timeout that is too short', `${length}keep-alive: timeout=2`, 0],
    ['the server closes', `${length}Connection: Close`, 0],
    ['the server closes, in a list of options', `${length}connection: x, close`, 0],
    ['the body ends with the connection', 'x: y', 0],
    ['both a length and chunks are given', `${length}transfer-encoding: chunked`, 0],
    ['chunks are given', 'transfer-encoding: chunked', 3_000],
  ])('gives how long the connection can be kept: %s', (_what, lines, keepAliveMs) => {
    expect(head(lines).keepAliveMs).toBe(keepAliveMs);
  });

  it('of an HTTP/1.0 server keeps the connection only if it says so', () => {
    const keepAliveMs = (lines: string) => new HeadReader().read(`HTTP/1.0 200 OK\r\n${lines}`).keepAliveMs;
    expect(keepAliveMs('content-length: 0')).toBe(0);
    expect(keepAliveMs('content-length: 0\r\nconnection: keep-alive')).toBe(3_000);
    expect(keepAliveMs('transfer-encoding: chunked\r\nconnection: keep-alive')).toBe(0);
  });
});

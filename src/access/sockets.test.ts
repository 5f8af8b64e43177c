import { describe, expect, it } from 'vitest';
import { socketsIn, tablesOf } from './sockets.ts';

describe('what the system tells of connections', () => {
  it('is read from where the other end may stand', () => {
    expect(tablesOf('127.0.0.1', 'linux').slice(0, 2)).toEqual(['/proc/net/tcp', '/proc/net/tcp6']);
    expect(tablesOf('::ffff:127.0.0.1', 'linux')[0]).toBe('/proc/net/tcp');
    expect(new Set(tablesOf('::1', 'linux'))).toEqual(new Set(['/proc/net/tcp6']));
    expect(new Set(tablesOf('::1', 'darwin'))).toEqual(new Set(['lsof']));
  });

  it('is understood as lsof writes it', () => {
    const lines = [
      ...['p812', 'u501', 'f12', 'n127.0.0.1:51000->127.0.0.1:7400', 'f13', 'n[::1]:51001->[::1]:7400'],
      ...['p900', 'u0', 'f7', 'n127.0.0.1:7400->127.0.0.1:51000', 'f8', 'n*:7400', ''],
    ];
    expect([...socketsIn(lines.join('\n'))]).toEqual([
      ['127.0.0.1:51000->127.0.0.1:7400', 501],
      ['[::1]:51001->[::1]:7400', 501],
      ['127.0.0.1:7400->127.0.0.1:51000', 0],
      ['*:7400', 0],
    ]);
  });
});

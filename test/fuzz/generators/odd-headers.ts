import type { Random } from '../../soak/random.ts';
import { canaryOf } from './random.ts';

export type Header = readonly [string, string];

/** A header that matters to Switchboard, Node or browsers, with an odd value. */
export function oddHeader(random: Random, index: number): Header {
  const canary = canaryOf(index);
  return random.pick<() => Header>([
    () => [
      'Content-Type',
      random.pick([
        '',
        'text/plain',
        'application/json;charset=utf-16',
        'application/jsonx',
        'APPLICATION/JSON ; a=b',
        'multipart/form-data; boundary=x',
        '*/*',
        ',',
      ]),
    ],
    () => [
      'Accept',
      random.pick([
        '',
        'text/html',
        'application/json;q=0',
        'text/event-stream',
        '*/*;q=0.1, x',
        ','.repeat(500),
      ]),
    ],
    () => [
      'MCP-Protocol-Version',
      random.pick([
        '',
        '2025-11-25',
        '2024-11-05',
        '2026-07-28',
        '9999-99-99',
        '2025-13-45',
        'x',
        '2025-11-25, 2025-06-18',
      ]),
    ],
    () => [
      'Mcp-Session-Id',
      random.pick([
        '',
        canary,
        '00000000-0000-0000-0000-000000000000',
        '__proto__',
        'x'.repeat(5_000),
        '\xe4\xff',
      ]),
    ],
    () => [
      'Last-Event-ID',
      random.pick([
        '',
        '0_0',
        '0_999999999999999',
        '1_1',
        '99_1',
        '-1_0',
        '0_',
        '_',
        '0_1e3',
        '0_0\x00',
        '9'.repeat(400),
        canary,
      ]),
    ],
    () => [
      'Host',
      random.pick([
        '',
        'evil.example',
        'localhost',
        '127.0.0.1:1',
        '[::1]',
        'localhost:x',
        'localhost@evil.example',
        'LOCALHOST',
      ]),
    ],
    () => [
      'Origin',
      random.pick([
        '',
        'null',
        'http://localhost:3000',
        'https://evil.example',
        'http://localhost.evil.example',
        'file://',
        'http://127.0.0.1:x',
      ]),
    ],
    () => [
      'X-Project-Id',
      random.pick(['', 'default', 'nobody', canary, '__proto__', '%00', 'a'.repeat(3_000)]),
    ],
    () => [
      'X-Switchboard-Prefer',
      random.pick(['region=eu', '=', ',,,', 'a=b,'.repeat(300), '=?base64?eA==?=', 'x', '  a = b ']),
    ],
    () => ['X-Switchboard-Session', random.pick(['', canary, 'x'.repeat(3_000)])],
    () => [
      'Mcp-Name',
      random.pick([
        '=?base64?ZWNobw==?=',
        '=?base64?%%%?=',
        '=?base64?',
        `=?${' '.repeat(3_000)}`,
        'x',
        '\xff',
      ]),
    ],
    () => ['Mcp-Method', random.pick(['tools/call', 'x', '', '=?base64?dG9vbHMvY2FsbA==?='])],
    () => [
      'Authorization',
      random.pick(['', 'Bearer', `Bearer ${canary}`, `Basic ${'A'.repeat(2_000)}`, 'Negotiate ==']),
    ],
    () => ['Cookie', `a=${canary}; ${'b=c; '.repeat(random.below(100))}`],
    () => ['Expect', random.pick(['100-continue', '100-Continue', 'x'])],
    () => ['Connection', random.pick(['close', 'keep-alive', 'upgrade', 'x, close', ''])],
    () => ['Upgrade', random.pick(['websocket', 'h2c'])],
    () => ['If-Match', random.pick(['*', '"1"', 'W/"1"', 'x'])],
    () => ['Accept-Encoding', random.pick(['gzip', 'identity;q=0', '*'])],
    () => ['X-Forwarded-For', '127.0.0.1'],
    () => [`X-${'N'.repeat(1 + random.below(200))}`, `${'v'.repeat(random.below(50) === 0 ? 100_000 : 50)}`],
    () => ['X-High', '\xe4\xf6\xfc\xff'],
    () => ['Sec-Fetch-Site', random.pick(['cross-site', 'same-origin', 'none', 'x'])],
  ])();
}

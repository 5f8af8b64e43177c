import type { Random } from '../../soak/random.ts';
import { brokenChunks, chunkedBody } from './chunkings.ts';
import { type Body, generateBody } from './messages.ts';
import { type Header, oddHeader } from './odd-headers.ts';
import { someBytes, weighted } from './random.ts';

export interface Sender {
  host: string;
  session: string | undefined;
}

/** One or more requests as bytes. */
export interface HttpCase {
  bytes: Buffer;
  what: string;
  /** Each request has exactly one response, in order. Undefined if the request boundaries are ambiguous. */
  requests: { isHead: boolean; ids: string[] | undefined }[] | undefined;
  /** Whether a response may be an endless stream. */
  isEndless: boolean;
  /** Whether the client disconnects without waiting for a response. */
  leaves: boolean;
}

/** A case for the client endpoints: mostly valid HTTP, so that the body is parsed too. */
export function generateHttp(random: Random, index: number, sender: Sender): HttpCase {
  return weighted(random, [
    [66, single],
    [8, pipelined],
    [14, odd],
    [12, broken],
  ])(random, index, sender);
}

function single(random: Random, index: number, sender: Sender): HttpCase {
  const body = generateBody(random, index);
  return {
    ...{ bytes: post(random, sender, body, []), what: body.what, isEndless: body.isEndless, leaves: false },
    requests: [{ isHead: false, ids: body.ids }],
  };
}

function pipelined(random: Random, index: number, sender: Sender): HttpCase {
  const bodies = Array.from({ length: 2 + random.below(7) }, () => generateBody(random, index)).filter(
    ({ isEndless, bytes }) => !isEndless && !/subscriptions/.test(bytes.toString('latin1')),
  );
  return {
    bytes: Buffer.concat(bodies.map((body) => post(random, sender, body, []))),
    what: `pipelined: ${bodies.map(({ what }) => what).join(' | ')}`,
    requests: bodies.map(() => ({ isHead: false, ids: undefined })),
    ...{ isEndless: false, leaves: false },
  };
}

function post(random: Random, sender: Sender, body: Body, more: readonly Header[]): Buffer {
  const accept = weighted(random, [
    [8, 'application/json, text/event-stream'],
    [1, 'text/event-stream, application/json'],
    [1, '*/*'],
  ]);
  const session: Header[] = sender.session === undefined ? [] : [['Mcp-Session-Id', sender.session]];
  const headers: Header[] = [
    ['Host', sender.host],
    ['Content-Type', 'application/json'],
    ['Accept', accept],
    ...(body.headers.length === 0 ? session : []),
    ...body.headers,
    ...more,
  ];
  return framed(random, 'POST /mcp HTTP/1.1', headers, body.bytes);
}

function framed(random: Random, line: string, headers: readonly Header[], body: Buffer): Buffer {
  const isChunked = random.chance(0.2);
  const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`;
  const text = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const head = Buffer.from(`${line}\r\n${text}${framing}\r\n\r\n`, 'latin1');
  return Buffer.concat([head, isChunked ? chunkedBody(random, body) : body]);
}

const methods = [
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'SEARCH',
  'PURGE',
];
const paths = [
  ...[
    '/mcp',
    '/mcp',
    '/mcp',
    '/mcp/',
    '/mcp/default',
    '/mcp/nobody',
    '/mcp/%00',
    '/mcp/%ff',
    '/mcp/%',
    '/mcp/a/b',
  ],
  ...[
    '/mcp?x=1',
    '/mcp/..%2f',
    '//mcp',
    '/',
    '*',
    '/healthz',
    '/readyz',
    '/sse',
    '/messages',
    '/messages?sessionId=',
  ],
  ...[
    '/messages?sessionId=x&sessionId=y',
    '/messages?%',
    '/api',
    '/api/',
    '/api/v1',
    '/api/v1/',
    '/api/v2/x',
    '/metrics',
  ],
  ...[
    '/.well-known/oauth-protected-resource',
    '/mcp#x',
    '/MCP',
    '/mcp;x',
    '/mcp/../api/v1/status',
    '/favicon.ico',
  ],
];

/** A complete request with an odd head. */
function odd(random: Random, index: number, sender: Sender): HttpCase {
  const method = random.pick(methods);
  const path = random.chance(0.02) ? `/mcp/${'p'.repeat(random.below(20_000))}` : random.pick(paths);
  const target = random.chance(0.05) ? `http://${sender.host}${path}` : path;
  const version = random.chance(0.1) ? 'HTTP/1.0' : 'HTTP/1.1';
  const body = generateBody(random, index);
  const usual: Header[] = [
    ['Host', sender.host],
    ['Content-Type', 'application/json'],
    ['Accept', 'application/json, text/event-stream'],
    ...(sender.session === undefined ? [] : ([['Mcp-Session-Id', sender.session]] as const)),
    ...body.headers,
  ];
  const headers = usual.filter(() => !random.chance(0.1));
  for (let count = 1 + random.below(3); count > 0; count--) {
    const header = oddHeader(random, index);
    // Replaces the usual header, or duplicates it.
    if (random.chance(0.5)) {
      const at = headers.findIndex(([name]) => name.toLowerCase() === header[0].toLowerCase());
      if (at !== -1) headers.splice(at, 1);
    }
    headers.splice(random.below(headers.length + 1), 0, header);
  }
  const lacksBody = method !== 'POST' && random.chance(0.7);
  return {
    bytes: framed(
      random,
      `${method} ${target} ${version}`,
      headers,
      lacksBody ? Buffer.alloc(0) : body.bytes,
    ),
    what: `${method} ${path.slice(0, 60)} with odd headers, ${body.what}`,
    requests: [{ isHead: method === 'HEAD', ids: undefined }],
    ...{ isEndless: true, leaves: false },
  };
}

/** Requests with ambiguous boundaries, or that end too early. */
function broken(random: Random, index: number, sender: Sender): HttpCase {
  const body = generateBody(random, index);
  const whole = post(random, sender, body, []);
  const head = (framing: string) =>
    Buffer.concat([
      Buffer.from(
        `POST /mcp HTTP/1.1\r\nHost: ${sender.host}\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`,
      ),
      body.bytes,
    ]);
  const [what, bytes] = random.pick<() => [string, Buffer]>([
    () => ['cut off', whole.subarray(0, random.below(whole.length))],
    () => ['a byte changed', changed(random, whole)],
    () => ['a longer Content-Length', head(`Content-Length: ${body.bytes.length + 1 + random.below(100)}`)],
    () => ['a shorter Content-Length', head(`Content-Length: ${random.below(body.bytes.length + 1)}`)],
    () => [
      'an odd Content-Length',
      head(
        `Content-Length: ${random.pick(['-1', '1e3', '0x10', '', '+5', '99999999999999999999', '1, 1', ' 7 7'])}`,
      ),
    ],
    () => [
      'two lengths',
      head(`Content-Length: ${body.bytes.length}\r\nContent-Length: ${random.below(50)}`),
    ],
    () => ['two framings', head(`Content-Length: ${body.bytes.length}\r\nTransfer-Encoding: chunked`)],
    () => [
      'an odd Transfer-Encoding',
      head(
        `Transfer-Encoding: ${random.pick(['gzip', 'identity', 'chunked, chunked', 'xchunked', ' chunked', 'chunked\x0b'])}`,
      ),
    ],
    () => [
      'broken chunks',
      Buffer.concat([
        head('Transfer-Encoding: chunked').subarray(0, -body.bytes.length || undefined),
        brokenChunks(random, body.bytes),
      ]),
    ],
    () => ['bare line feeds', Buffer.from(whole.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')],
    () => ['bare returns', Buffer.from(whole.toString('latin1').replaceAll('\r\n', '\r'), 'latin1')],
    () => ['folded headers', head(`X-Folded: a\r\n b\r\n\tc\r\nContent-Length: ${body.bytes.length}`)],
    () => ['a space before the colon', head(`Content-Length : ${body.bytes.length}`)],
    () => ['a NUL in a header', head(`X-Nul: a\0b\r\nContent-Length: ${body.bytes.length}`)],
    () => ['many headers', head(`${'A: b\r\n'.repeat(3_000)}Content-Length: ${body.bytes.length}`)],
    () => [
      'a head without end',
      Buffer.from(`POST /mcp HTTP/1.1\r\n${'X: y\r\n'.repeat(random.below(500))}`),
    ],
    () => [
      'an odd first line',
      Buffer.from(
        random.pick([
          'GET\r\n\r\n',
          'GET /mcp\r\n\r\n',
          ' GET / HTTP/1.1\r\n\r\n',
          'FOO /mcp HTTP/1.1\r\n\r\n',
          'get / HTTP/1.1\r\n\r\n',
          'GET / HTTP/9.9\r\n\r\n',
          'GET / HTP/1.1\r\n\r\n',
          'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
          '\r\n\r\n\r\n',
          'GET /\0 HTTP/1.1\r\n\r\n',
        ]),
      ),
    ],
    () => [
      'another protocol',
      Buffer.from(
        random.pick([
          'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
          '\x16\x03\x01\x02\x00\x01\x00\x01\xfc',
          'SSH-2.0-x\r\n',
          '\0\0\0\x08\x04\xd2\x16\x2f',
          'EHLO x\r\n',
        ]),
        'latin1',
      ),
    ],
    () => ['noise', someBytes(random, 1 + random.below(200))],
  ])();
  return {
    bytes,
    what: `${what}, ${body.what}`,
    requests: undefined,
    isEndless: true,
    leaves: random.chance(0.3),
  };
}

function changed(random: Random, whole: Buffer): Buffer {
  const copy = Buffer.from(whole);
  copy[random.below(copy.length)] = random.below(256);
  return copy;
}

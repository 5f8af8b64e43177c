import type { Random } from '../../soak/random.ts';
import { brokenChunks, chunkedBody } from './chunkings.ts';
import { someBytes, weighted } from './random.ts';
import { answerText, falseText, HOSTILE_MARK, type Mood, streamText } from './sse.ts';

export interface RawResponse {
  bytes: Buffer;
  /** Whether the connection is closed after it. */
  closes: boolean;
}

/** The response of a streamable HTTP server to a call. */
export function generateResponse(random: Random, index: number, id: string, mood: Mood): RawResponse {
  if (mood === 'hostile' && random.chance(0.4)) return broken(random, id);
  const isStream = random.chance(0.6);
  const body = isStream
    ? streamText(random, index, id, mood)
    : Buffer.from(
        mood === 'odd' || random.chance(0.3)
          ? spread(random, answerText(random, index, id, mood))
          : falseText(random, id),
      );
  const type = isStream
    ? random.pick(['text/event-stream', 'text/event-stream; charset=utf-8', 'Text/Event-Stream'])
    : random.pick(['application/json', 'application/json; charset=utf-8', 'application/JSON']);
  return framed(random, `Content-Type: ${type}\r\n${oddHeaders(random)}`, body);
}

function oddHeaders(random: Random): string {
  return random.pick([
    '',
    '',
    'x-a: b\r\nX-A: c\r\n',
    'Cache-Control:no-cache\r\n',
    `X-Long: ${'l'.repeat(2_000)}\r\n`,
    'Empty:\r\n',
  ]);
}

function framed(random: Random, headers: string, body: Buffer): RawResponse {
  const first = random.pick(['HTTP/1.1 200 OK', 'HTTP/1.1 200 ', 'HTTP/1.1 200 Very Fine']);
  const interim = random.chance(0.05) ? 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n' : '';
  const head = (framing: string) => Buffer.from(`${interim}${first}\r\n${headers}${framing}\r\n`);
  return weighted<() => RawResponse>(random, [
    [4, () => ({ bytes: Buffer.concat([head(`Content-Length: ${body.length}\r\n`), body]), closes: false })],
    [
      4,
      () => ({
        bytes: Buffer.concat([head('Transfer-Encoding: chunked\r\n'), chunkedBody(random, body)]),
        closes: false,
      }),
    ],
    [1, () => ({ bytes: Buffer.concat([head('Connection: close\r\n'), body]), closes: true })],
  ])();
}

/** A response that no server should send. */
function broken(random: Random, id: string): RawResponse {
  const body = Buffer.from(falseText(random, id));
  const status = random.pick([
    100, 101, 199, 201, 202, 204, 206, 301, 302, 304, 400, 401, 403, 405, 429, 500, 502, 503, 999,
  ]);
  const head = (framing: string) => `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`;
  const [text, closes] = random.pick<() => [string | Buffer, boolean]>([
    () => [
      `HTTP/1.1 ${status} X\r\nContent-Length: ${body.length}\r\nLocation: http://127.0.0.1:9/\r\n\r\n${body}`,
      status < 200 || status === 204 || status === 304,
    ],
    () => [`HTTP/1.1 ${status} X\r\n\r\n`, true],
    () => [`${head(`Content-Length: ${body.length + 9}`)}${body}`, true],
    () => [`${head(`Content-Length: ${Math.max(0, body.length - 3)}`)}${body}`, true],
    () => [`${head('Content-Length: x')}${body}`, true],
    () => [`${head('Content-Length: 3\r\nContent-Length: 4')}${body}`, true],
    () => [
      Buffer.concat([Buffer.from(head('Transfer-Encoding: chunked')), brokenChunks(random, body)]),
      true,
    ],
    () => [
      `HTTP/1.1 200 OK\r\nContent-Type: ${random.pick(['text/html', '', 'application/xml', HOSTILE_MARK])}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      false,
    ],
    () => [
      random.pick([
        'HTTP/1.1',
        'HTTP/2 200\r\n\r\n',
        'ICY 200 OK\r\n\r\n',
        '\r\n\r\n',
        'HTTP/1.1 20 OK\r\n\r\n',
        'HTTP/1.1 -200 OK\r\n\r\n',
      ]),
      true,
    ],
    () => [`HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(random.below(5_000))}`, true],
    () => [`HTTP/1.1 200 OK\r\nX: ${'y'.repeat(random.below(100_000))}`, true],
    () => [someBytes(random, random.below(200)), true],
    () => ['', true],
    () => [`${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(random.below(50))}`, true],
    () => [`HTTP/1.1 200 OK\nContent-Length: 2\n\n{}`, true],
  ])();
  return { bytes: Buffer.isBuffer(text) ? text : Buffer.from(text, 'latin1'), closes };
}

/** JSON with line breaks between its tokens, which are significant inside an event. */
function spread(random: Random, text: string): string {
  const end = random.pick(['', '', '\n', '\r\n', '\r', '\n\n', '\r\r']);
  return end === ''
    ? text
    : `${text.replace(/^\{/, `{${end}`).replace(/"(jsonrpc|id|result)":/g, `"$1"${end}:${end}`)}${end}`;
}

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyCuts, cut } from '../../../test/helpers/chunks.ts';
import { HeadReader, MalformedResponseError, type ResponseHead } from './response-head.ts';
import { ResponseParser } from './response-parser.ts';

interface Heard {
  heads: ResponseHead[];
  body: string;
  /** Bytes after the response; undefined if the response did not end. */
  leftOver: number | undefined;
  error: Error | undefined;
}

const oldBytes = Buffer.from('\r\n\r\nHTTP/1.1 500 Old\r\n\r\n');

/** Parses one response. Lent pieces share a reused buffer, like the reads of a socket. */
function read(pieces: readonly Buffer[], how: { lent?: boolean; closes?: boolean } = {}): Heard {
  const heard: Heard = { heads: [], body: '', leftOver: undefined, error: undefined };
  const body: Buffer[] = [];
  const parser = new ResponseParser(
    {
      onHead: (head) => heard.heads.push(head),
      onData: (chunk) => body.push(chunk),
      onEnd: (leftOver) => {
        heard.leftOver = leftOver;
      },
    },
    new HeadReader(),
  );
  parser.start();
  try {
    for (const piece of pieces) {
      if (how.lent) {
        const buffer = Buffer.concat([piece, oldBytes]);
        parser.push(buffer, piece.length, true);
        buffer.fill('!');
      } else {
        parser.push(piece, piece.length, false);
      }
    }
    if (how.closes) parser.finish();
  } catch (error) {
    heard.error = error as Error;
  }
  heard.body = Buffer.concat(body).toString('latin1');
  return heard;
}

function readText(text: string, closes = false): Heard {
  return read([Buffer.from(text, 'latin1')], { closes });
}

const bytes = fc.uint8Array({ maxLength: 600 }).map((array) => Buffer.from(array).toString('latin1'));
const anyCase = (name: string) =>
  fc
    .array(fc.boolean(), { minLength: name.length, maxLength: name.length })
    .map((ups) => [...name].map((letter, at) => (ups[at] ? letter.toUpperCase() : letter)).join(''));
const blanks = fc.constantFrom('', ' ', '\t', '  ');
const headerText = fc
  .string({ unit: fc.constantFrom('a', 'Z', '0', ' ', ':', ',', 'é', '~'), maxLength: 20 })
  .map((text) => text.trim());
const line = (name: string, value: fc.Arbitrary<string>) =>
  fc
    .tuple(anyCase(name), blanks, value, blanks)
    .map(([name, before, value, after]) => `${name}:${before}${value}${after}`);
const otherLines = fc.array(
  fc
    .tuple(fc.stringMatching(/^x-[a-z0-9!#$%&'*+.^_`|~-]{0,12}$/), headerText)
    .map(([name, value]) => `${name}: ${value}`),
  { maxLength: 4 },
);
const session = fc.stringMatching(/^[!-~]{1,20}$/);
const interim = fc.constantFrom(
  '',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 103 Early\r\nlink: </a>\r\n\r\n',
);

/** A chunked body, with optional extensions and trailers. */
const chunkedBody = fc
  .tuple(
    fc.array(
      fc.tuple(
        bytes.filter((part) => part !== ''),
        fc.constantFrom('', ';a', ';a=b', ' ;x="y z"'),
        fc.boolean(),
      ),
      { maxLength: 5 },
    ),
    fc.constantFrom('', 'x-sum: 1\r\n', 'a: b\r\nc: d\r\n'),
  )
  .map(([chunks, trailers]) => ({
    body: chunks.map(([part]) => part).join(''),
    framed: `${chunks
      .map(([part, extension, upper]) => {
        const size = part.length.toString(16);
        return `${upper ? size.toUpperCase() : `0${size}`}${extension}\r\n${part}\r\n`;
      })
      .join('')}0\r\n${trailers}\r\n`,
  }));

const answers = fc
  .record({
    interim,
    status: fc.integer({ min: 200, max: 599 }).filter((status) => status !== 204 && status !== 304),
    reason: fc.constantFrom('', ' ', ' OK', ' Not Fôund'),
    others: otherLines,
    session,
    sessionLine: line('mcp-session-id', fc.constant('@')),
    framing: fc.oneof(
      bytes.chain((body) =>
        line('content-length', fc.constant(String(body.length))).map((length) => ({
          body,
          framed: body,
          line: length,
          closes: false,
        })),
      ),
      chunkedBody.chain((chunked) =>
        line('transfer-encoding', anyCase('chunked')).map((coding) => ({
          ...chunked,
          line: coding,
          closes: false,
        })),
      ),
      bytes.map((body) => ({ body, framed: body, line: 'x-until: close', closes: true })),
    ),
  })
  .map((answer) => ({
    ...answer,
    text: [
      answer.interim,
      `HTTP/1.1 ${answer.status}${answer.reason}\r\n`,
      ...[...answer.others, answer.sessionLine.replace('@', () => answer.session), answer.framing.line].map(
        (header) => `${header}\r\n`,
      ),
      '\r\n',
      answer.framing.framed,
    ].join(''),
  }));

describe('responses', () => {
  it('parse the same however they are split', () => {
    fc.assert(
      fc.property(answers, anyCuts, fc.boolean(), (answer, cuts, lent) => {
        const pieces = cut(Buffer.from(answer.text, 'latin1'), cuts);
        const { heads, body, leftOver, error } = read(pieces, { lent, closes: answer.framing.closes });
        expect(error).toBeUndefined();
        expect(heads.map(({ status, sessionId }) => ({ status, sessionId }))).toEqual([
          { status: answer.status, sessionId: answer.session },
        ]);
        expect(body).toBe(answer.framing.body);
        expect(leftOver).toBe(0);
      }),
    );
  });

  it('that are truncated never end, and fail', () => {
    fc.assert(
      fc.property(answers, anyCuts, fc.nat(), (answer, cuts, end) => {
        fc.pre(!answer.framing.closes);
        const whole = Buffer.from(answer.text, 'latin1');
        const { leftOver, error } = read(cut(whole.subarray(0, end % whole.length), cuts), { closes: true });
        expect(leftOver).toBeUndefined();
        expect(error?.message).toMatch(/closed the connection/);
      }),
    );
  });

  it('of any bytes fail only with a clear error', () => {
    const noise = fc.oneof(
      bytes,
      bytes.map((text) => `HTTP/1.1 200 OK\r\n${text}`),
      bytes.map((text) => `HTTP/1.1 200 OK\r\n\r\n${text}`),
      bytes.map((text) => `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${text}`),
      fc.tuple(answers, fc.nat(), bytes).map(([{ text }, at, junk]) => {
        const place = at % text.length;
        return text.slice(0, place) + junk + text.slice(place + 1);
      }),
    );
    fc.assert(
      fc.property(noise, anyCuts, fc.boolean(), (text, cuts, lent) => {
        const { leftOver, error } = read(cut(Buffer.from(text, 'latin1'), cuts), { lent, closes: true });
        if (error === undefined) expect(leftOver).toBeGreaterThanOrEqual(0);
        else if (!(error instanceof MalformedResponseError))
          expect(error.message).toMatch(/closed the connection/);
      }),
    );
  });

  it('use chunked framing even if a length is given', () => {
    expect(
      readText(
        'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
      ),
    ).toMatchObject({ body: 'ab', leftOver: 0 });
  });

  it('report the bytes that follow them', () => {
    expect(readText('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 408')).toMatchObject({
      body: 'ok',
      leftOver: 12,
    });
    expect(readText('HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\nx')).toMatchObject({
      body: '',
      leftOver: 1,
    });
    expect(readText('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nxy')).toMatchObject({
      leftOver: 2,
    });
  });

  it.each([204, 304])('with status %i have no body, whatever their headers say', (status) => {
    const { leftOver, body } = readText(`HTTP/1.1 ${status} X\r\ncontent-length: 5\r\n\r\n`);
    expect({ leftOver, body }).toEqual({ leftOver: 0, body: '' });
  });

  it('are parsed one after the other on the same connection', () => {
    const heard: (number | string)[] = [];
    const parser: ResponseParser = new ResponseParser(
      {
        onHead: ({ status }) => heard.push(status),
        onData: (chunk) => heard.push(chunk.toString()),
        onEnd: () => parser.start(),
      },
      new HeadReader(),
    );
    parser.start();
    for (const text of [
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nb',
    ]) {
      parser.push(Buffer.from(text), text.length, false);
    }
    expect(heard).toEqual([200, 'a', 200, 'b']);
  });

  it('are not parsed further once the parser is stopped', () => {
    const heard: string[] = [];
    const parser: ResponseParser = new ResponseParser(
      {
        onHead: () => {},
        onData: (chunk) => {
          heard.push(chunk.toString());
          parser.stop();
        },
        onEnd: () => heard.push('end'),
      },
      new HeadReader(),
    );
    parser.start();
    const text = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n';
    parser.push(Buffer.from(text), text.length, false);
    expect(heard).toEqual(['a']);
  });
});

describe('a malformed response is rejected:', () => {
  const ok = 'HTTP/1.1 200 OK\r\n';
  const chunked = `${ok}transfer-encoding: chunked\r\n\r\n`;
  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['HTTP/2', 'HTTP/2 200 OK\r\n'],
    ['bare line feeds', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n'],
    ['no status', 'HTTP/1.1 OK\r\n\r\n'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['a folded header', `${ok}a: b\r\n c\r\n\r\n`],
    ['a header without a colon', `${ok}nonsense\r\n\r\n`],
    ['a blank before the colon', `${ok}content-length : 1\r\n\r\nx`],
    ['an empty header name', `${ok}: x\r\n\r\n`],
    ['a control character', `${ok}a: b\0c\r\n\r\n`],
    ['two lengths', `${ok}content-length: 1\r\ncontent-length: 2\r\n\r\nxy`],
    ['a list of two lengths', `${ok}content-length: 1, 2\r\n\r\nxy`],
    ['a negative length', `${ok}content-length: -1\r\n\r\n`],
    ['a length with a sign', `${ok}content-length: +1\r\n\r\n`],
    ['an empty length', `${ok}content-length:\r\n\r\n`],
    ['a length too large for a number', `${ok}content-length: 99999999999999999999\r\n\r\n`],
    ['an unknown coding', `${ok}transfer-encoding: gzip, chunked\r\n\r\n`],
    ['chunked twice', `${ok}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n`],
    ['a switch of protocols', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n'],
    ['an endless head', `${ok}${'a: b\r\n'.repeat(12_000)}`],
    ['a long head', `${ok}a: ${'b'.repeat(70_000)}\r\n\r\n`],
    ['a chunk without a size', `${chunked}\r\n`],
    ['a chunk size that is not a number', `${chunked}xyz\r\n`],
    ['a chunk size with a prefix', `${chunked}0x5\r\nhello\r\n`],
    ['a chunk size too large for a number', `${chunked}fffffffffffffffff\r\n`],
    ['a chunk size with a bare line feed', `${chunked}1\na\r\n`],
    ['a chunk longer than its size', `${chunked}1\r\nab\r\n`],
    ['a chunk extension with a bare line feed', `${chunked}1;x\na\r\n`],
    ['an endless chunk extension', `${chunked}1;${'x'.repeat(70_000)}`],
    ['a trailer with a bare line feed', `${chunked}0\r\na: b\n\r\n`],
    ['endless trailers', `${chunked}0\r\n${'a: b\r\n'.repeat(20_000)}`],
  ])('%s', (_what, text) => {
    expect(readText(text).error).toBeInstanceOf(MalformedResponseError);
    expect(read(cut(Buffer.from(text, 'latin1'), 1_000)).error).toBeInstanceOf(MalformedResponseError);
    expect(read(cut(Buffer.from(text, 'latin1'), 7)).error).toBeInstanceOf(MalformedResponseError);
  });
});

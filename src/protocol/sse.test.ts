import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyCuts, cut } from '../../test/helpers/chunks.ts';
import { jsonTexts } from '../../test/helpers/json-text.ts';
import { SseParser, sseKeepAlive, sseMessage, ssePrimer } from './sse.ts';

interface Heard {
  events: { type: string; id: string | undefined; data: string }[];
  retries: number[];
  lastEventId: string | undefined;
  tooLarge: number;
}

const noLimit = Number.POSITIVE_INFINITY;

function parse(pieces: readonly Buffer[], maxBytes = noLimit): Heard {
  const heard: Heard = { events: [], retries: [], lastEventId: undefined, tooLarge: 0 };
  const parser = new SseParser(maxBytes, {
    event: ({ type, id, data }) => heard.events.push({ type, id, data: Buffer.concat(data).toString() }),
    retry: (milliseconds) => heard.retries.push(milliseconds),
    tooLarge: () => {
      heard.tooLarge++;
    },
  });
  for (const piece of pieces) parser.push(piece);
  heard.lastEventId = parser.lastEventId;
  return heard;
}

/** The specification as code: slow, on the whole text, line by line. */
function parseBySpecification(text: string): Heard {
  const heard: Heard = { events: [], retries: [], lastEventId: undefined, tooLarge: 0 };
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/);
  // Text after the last line break is not a line.
  lines.pop();
  let type = '';
  let data: string[] = [];
  let id: string | undefined;
  for (const line of lines) {
    if (line === '') {
      heard.lastEventId = id;
      if (data.length > 0) heard.events.push({ type: type || 'message', id, data: data.join('\n') });
      type = '';
      data = [];
      continue;
    }
    const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line)!;
    if (name === 'data') data.push(value);
    if (name === 'event') type = value;
    if (name === 'id' && !value.includes('\0')) id = value;
    if (name === 'retry' && /^\d{1,9}$/.test(value)) heard.retries.push(Number(value));
  }
  return heard;
}

const fragments = fc.constantFrom(
  ...[
    'data',
    'data:',
    'data: ',
    'event: ',
    'event:',
    'id: ',
    'id:',
    'id',
    'retry: ',
    'retry:',
    ':',
    ': ',
    ' ',
  ],
  ...[
    '\n',
    '\n',
    '\n',
    '\r',
    '\r\n',
    '\n\n',
    '\r\r',
    '\uFEFF',
    '\0',
    '0',
    '1200',
    'x',
    'ü',
    '€',
    '😀',
    '{"a":1}',
  ],
);
const streams = fc.array(fragments, { maxLength: 60 }).map((parts) => parts.join(''));

describe('an event stream', () => {
  it('is parsed as the specification says, however it is split', () => {
    fc.assert(
      fc.property(streams, anyCuts, (text, cuts) => {
        expect(parse(cut(Buffer.from(text), cuts))).toEqual(parseBySpecification(text));
      }),
      { numRuns: 1_000 },
    );
  });

  it('may begin with a byte order mark, and only there', () => {
    const stream = Buffer.from('\uFEFFdata: a\n\n\uFEFFdata: b\n\n');
    for (const size of [1, 2, 3, 5, 100]) {
      expect(parse(cut(stream, size)).events.map(({ data }) => data)).toEqual(['a']);
    }
    expect(parse([Buffer.from('\n\uFEFFdata: b\n\n')]).events).toEqual([]);
  });

  it('keeps the id of the last complete event, to resume from there', () => {
    expect(parse([Buffer.from('id: 7\ndata: a\n\nid: 8\ndata: b\n')])).toMatchObject({
      events: [{ id: '7', data: 'a' }],
      lastEventId: '7',
    });
    expect(parse([Buffer.from('id: 7\n\ndata: a\n\n')])).toMatchObject({
      events: [{ id: '7', data: 'a' }],
      lastEventId: '7',
    });
  });

  it('is scanned once for each kind of line break', () => {
    const line = fc.constantFrom('\n', '\r', '\r\n', ':\n', ':\r', 'data: x\r\r');
    const runs = fc.array(fc.tuple(line, fc.integer({ min: 1, max: 500 })), { maxLength: 5 });
    fc.assert(
      fc.property(runs, (parts) => {
        const chunk = Buffer.from(parts.map(([text, count]) => text.repeat(count)).join(''));
        let looked = 0;
        chunk.indexOf = (value, from) => {
          const found = Buffer.prototype.indexOf.call(chunk, value, from);
          looked += (found === -1 ? chunk.length : found + 1) - Number(from ?? 0);
          return found;
        };
        parse([chunk]);
        expect(looked).toBeLessThanOrEqual(2 * chunk.length);
      }),
    );
  });

  it('emits nothing before the blank line, for any kind of line break', () => {
    for (const end of ['\n', '\r\n', '\r']) {
      const text = `data: a${end}${end}`;
      expect(parse([Buffer.from(text.slice(0, -end.length))]).events).toEqual([]);
      expect(parse([Buffer.from(text)]).events).toHaveLength(1);
    }
  });
});

describe('an event that is too large', () => {
  const maxBytes = 64;
  const sizes = fc.array(
    fc.record({
      large: fc.boolean(),
      lines: fc.integer({ min: 1, max: 3 }),
      name: fc.constantFrom('data', ':'),
    }),
    { minLength: 1, maxLength: 6 },
  );

  it('is skipped with one notice, and the next ones follow', () => {
    fc.assert(
      fc.property(sizes, anyCuts, (list, cuts) => {
        const text = list
          .map(({ large, lines, name }, index) => {
            const filler = `${name} ${'x'.repeat(large ? maxBytes : 4)}\n`.repeat(lines);
            return `id: ${index}\ndata: event ${index}\n${filler}\n`;
          })
          .join('');
        const { events, tooLarge } = parse(cut(Buffer.from(text), cuts), maxBytes);
        const fits = list.flatMap(({ large }, index) => (large ? [] : [String(index)]));
        expect(events.map(({ id }) => id)).toEqual(fits);
        expect(tooLarge).toBe(list.length - fits.length);
      }),
    );
  });

  it('may consist of empty lines alone', () => {
    const { events, tooLarge } = parse([Buffer.from(`${'data:\n'.repeat(200)}\ndata: next\n\n`)], maxBytes);
    expect(events.map(({ data }) => data)).toEqual(['next']);
    expect(tooLarge).toBe(1);
  });

  it('may be a line that never ends', () => {
    const endless = Array.from({ length: 100 }, () => Buffer.from('data: and on and on '));
    expect(parse(endless, maxBytes)).toMatchObject({ events: [], tooLarge: 1 });
    expect(parse([...endless, Buffer.from('\n\ndata: next\n\n')], maxBytes).events).toHaveLength(1);
  });
});

describe('messages sent as events', () => {
  it('are parsed back unchanged, with blanks for the line breaks of pretty-printed ones', () => {
    const sent = fc.array(
      fc.tuple(jsonTexts.value, anyCuts, fc.option(fc.nat().map(String), { nil: undefined })),
    );
    fc.assert(
      fc.property(sent, anyCuts, (messages, cuts) => {
        const stream = messages.flatMap(([text, pieces, id]) => [
          ...sseMessage(cut(Buffer.from(text), pieces), id),
          sseKeepAlive,
        ]);
        const { events } = parse(cut(Buffer.concat(stream), cuts));
        expect(events.map(({ data }) => data)).toEqual(
          messages.map(([text]) => text.replace(/[\r\n]/g, ' ')),
        );
        expect(events.map(({ data }) => JSON.parse(data))).toEqual(
          messages.map(([text]) => JSON.parse(text)),
        );
        expect(events.every(({ type }) => type === 'message')).toBe(true);
      }),
    );
  });

  it('cannot break out of their event', () => {
    const evil = Buffer.from('{"a":"\n\ndata: other\r\rid: 9\n\n"}');
    const { events } = parse(sseMessage([evil], '1'));
    expect(events).toMatchObject([{ id: '1' }]);
  });

  it('can be resumed from before the first one', () => {
    expect(parse([ssePrimer('3-0', 1_000)])).toMatchObject({
      events: [{ id: '3-0', data: '' }],
      retries: [1_000],
      lastEventId: '3-0',
    });
  });
});

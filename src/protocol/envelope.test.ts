import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { callTexts, jsonTexts, numberTexts, objectText, stringTexts } from '../../test/helpers/json-text.ts';
import { SwitchboardError } from '../errors.ts';
import { JsonScanner, type Span } from './json-scanner.ts';
import { bytesAt, idValue, type Message } from './message.ts';
import { readMessage, splitBatch } from './message-reader.ts';

function read(text: string | Buffer): Message {
  return readMessage(Buffer.from(text));
}

/** The message, or the code of the error. */
function attempt(text: string | Buffer): Message | string {
  try {
    return read(text);
  } catch (error) {
    if (error instanceof SwitchboardError) return error.code;
    throw error;
  }
}

function textAt({ bytes }: Message, span: Span | undefined): string | undefined {
  return span && bytesAt(bytes, span).toString();
}

/** A call with these params (JSON text) and the usual envelope. */
function call(params: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
}

describe('a message', () => {
  it('is a request, a notification, a result or an error', () => {
    expect(read('{"jsonrpc":"2.0","id":1,"method":"ping"}')).toMatchObject({
      kind: 'request',
      method: 'ping',
      id: 1,
    });
    expect(read('{"jsonrpc":"2.0","method":"a/b"}')).toMatchObject({ kind: 'notification', id: undefined });
    expect(read('{"jsonrpc":"2.0","id":1,"result":null}')).toMatchObject({ kind: 'result', method: '' });
    expect(read('{"jsonrpc":"2.0","id":null,"error":{}}')).toMatchObject({ kind: 'error', id: undefined });
  });

  it('gives the positions of the parts that routing needs', () => {
    const message = read(
      '{ "params": {"_meta":{"a":1, "progressToken" : "p" }, "name": "caf\u00e9 \\ud83d\\ude00", "uri":"a:b",' +
        '"requestId": 7, "progressToken": [8]}, "method": "x", "id" : "\\u0031", "jsonrpc":"2.0" }',
    );
    expect(message).toMatchObject({
      method: 'x',
      id: '1',
      name: { value: 'caf\u00e9 😀' },
      uri: { value: 'a:b' },
    });
    expect(textAt(message, message.idSpan)).toBe('"\\u0031"');
    expect(textAt(message, message.name)).toBe('"caf\u00e9 \\ud83d\\ude00"');
    expect(textAt(message, message.requestId)).toBe('7');
    expect(textAt(message, message.progressToken)).toBe('[8]');
    expect(textAt(message, message.wantedProgress)).toBe('"p"');
    expect(textAt(message, message.params)?.slice(0, 9)).toBe('{"_meta":');
  });

  it('gives the reference of a completion', () => {
    const { reference, name } = read(
      call('{"ref":{"type":"ref/prompt","name":"a"},"argument":{"name":"b"}}'),
    );
    expect(reference).toMatchObject({ type: { value: 'ref/prompt' }, name: { value: 'a' }, uri: undefined });
    expect(name).toBeUndefined();
  });

  it('takes a name only from params', () => {
    const nested =
      '{"arguments":{"name":"evil","params":{"name":"evil"},"_meta":{"progressToken":1}},"name":"good"}';
    const message = read(call(nested));
    expect(message.name?.value).toBe('good');
    expect(message.wantedProgress).toBeUndefined();
    expect(message.bytes.toString()).toBe(call(nested));
    expect(read('{"jsonrpc":"2.0","id":1,"method":"m","name":"evil","params":{}}').name).toBeUndefined();
    expect(read(call('{"name":["evil"]}')).name).toBeUndefined();
  });

  it.each([
    ['invalid JSON', '{"jsonrpc":"2.0","id":1,"method":"ping"', 'parse_error'],
    ['trailing characters', '{"jsonrpc":"2.0","id":1,"method":"ping"}x', 'parse_error'],
    ['a byte order mark', '\uFEFF{"jsonrpc":"2.0","id":1,"method":"ping"}', 'parse_error'],
    ['a control character', '{"jsonrpc":"2.0","id":1,"method":"pi\u0001ng"}', 'parse_error'],
    ['invalid UTF-8', Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xff"}', 'latin1'), 'parse_error'],
    [
      'an encoded surrogate',
      Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}', 'latin1'),
      'parse_error',
    ],
    [
      'an overlong slash',
      Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xc0\xaf"}', 'latin1'),
      'parse_error',
    ],
    ['no object', '[]', 'invalid_request'],
    ['no object either', '7', 'invalid_request'],
    ['no version', '{"id":1,"method":"ping"}', 'invalid_request'],
    ['another version', '{"jsonrpc":"2.00","id":1,"method":"ping"}', 'invalid_request'],
    ['no method, result or error', '{"jsonrpc":"2.0","id":1}', 'invalid_request'],
    ['a method and a result', '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', 'invalid_request'],
    ['a result and an error', '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', 'invalid_request'],
    ['a method that is not a string', '{"jsonrpc":"2.0","id":1,"method":["ping"]}', 'invalid_request'],
    ['params in an array', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 'invalid_request'],
    ['an id that is null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', 'invalid_request'],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', 'invalid_request'],
  ])('is rejected with %s', (_what, text, code) => {
    expect(attempt(text)).toBe(code);
  });
});

describe('callOptions', () => {
  const prefer = '"dev.switchboard/prefer":{"labels":{"region":"eu"}}';
  const metaOf = (text: string) => {
    const message = read(text);
    return textAt(message, message.callOptions);
  };

  it.each([
    `{${prefer}}`,
    ` { "progressToken" : 1 , ${prefer} , "other" : [{}] } `,
    '{"dev.switchboard/timeoutMs":1}',
    '{"dev.switchboard/x":null}',
  ])('are the _meta %s', (meta) => {
    const text = call(`{"name":"a","_meta":${meta},"arguments":{}}`);
    expect(metaOf(text)).toBe(meta.trim());
    expect(read(text).bytes.toString()).toBe(text);
  });

  it.each([
    '{"_meta":{}}',
    '{"_meta":null}',
    '{"_meta":"dev.switchboard/prefer"}',
    '{"_meta":{"progressToken":"dev.switchboard/prefer"}}',
    '{"_meta":{"dev.switchboard":1,"dev.switchboard/":2,"dev.switchboardx/y":3,"com.example/dev.switchboard/x":4}}',
    `{"_meta":{"inner":{${prefer}}}}`,
    `{${prefer},"arguments":{"_meta":{${prefer}}}}`,
  ])('are not in the params %s', (params) => {
    expect(metaOf(call(params))).toBeUndefined();
  });

  it('have one reading: escaped keys and duplicate _meta members are rebuilt', () => {
    const key = prefer.replace('dev', '\\u0064ev');
    expect(metaOf(call(`{"_meta":{${key}}}`))).toBe(`{${prefer}}`);
    expect(metaOf(call(`{"_meta":{"a":1},"_meta":{${prefer}}}`))).toBe(`{${prefer}}`);
    expect(metaOf(call(`{"_meta":{${prefer}},"_meta":{"a":1}}`))).toBeUndefined();
    expect(metaOf(call(`{"_meta":{${prefer}}},"params":{}`))).toBeUndefined();
  });

  it('are found among any other members, in any position', () => {
    const others = fc.array(
      fc.tuple(fc.nat(), jsonTexts.value).map(([key, value]) => `"other${key}":${value}`),
      { maxLength: 3 },
    );
    const metas = fc
      .tuple(others, fc.boolean())
      .chain(([members, hasOptions]) => objectText(hasOptions ? [...members, prefer] : members));
    fc.assert(
      fc.property(metas, (meta) => {
        expect(metaOf(call(`{"name":"a","_meta":${meta}}`))).toBe(meta.includes(prefer) ? meta : undefined);
      }),
    );
  });
});

describe('an id', () => {
  it.each([
    ['"abc"', 'abc'],
    ['""', ''],
    ['"1"', '1'],
    ['0', 0],
    ['-7', -7],
    ['1.0', 1],
    ['1e2', 100],
    ['9007199254740991', 9_007_199_254_740_991],
    ['9007199254740993', 9_007_199_254_740_993n],
    ['-18446744073709551615', -18_446_744_073_709_551_615n],
    ['1.5', undefined],
    ['1e400', undefined],
    ['1e20', undefined],
    ['null', undefined],
    ['true', undefined],
    ['{}', undefined],
    ['[1]', undefined],
  ])('written as %s has its value', (text, value) => {
    const bytes = Buffer.from(`  ${text} `);
    expect(idValue(bytes, { start: 2, end: 2 + text.length })).toBe(value);
  });

  it('is equal in every spelling, and different for every other integer', () => {
    const of = (text: string) => idValue(Buffer.from(text), { start: 0, end: text.length });
    fc.assert(
      fc.property(fc.bigInt(), fc.bigInt(), (one, other) => {
        expect(of(String(one)) === of(String(other))).toBe(one === other);
        expect(of(`"${one}"`)).not.toBe(of(String(one)));
      }),
    );
  });
});

describe('an ambiguous message', () => {
  it.each([
    ['two ids', '{"jsonrpc":"2.0","id":1,"method":"m","id":2}', { id: 2 }],
    ['an escaped id', '{"jsonrpc":"2.0","id":1,"method":"m","\\u0069d":2}', { id: 2 }],
    ['two methods', '{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}', { method: 'n' }],
    ['two names', call('{"name":"a","name":"b"}'), { name: { value: 'b' } }],
    ['a name after a number', call('{"name":1,"name":"b"}'), { name: { value: 'b' } }],
    ['a name before a number', call('{"name":"a","name":1}'), { name: undefined }],
    ['an escaped name', call('{"name":"a","na\\u006de":"b"}'), { name: { value: 'b' } }],
    ['two params', call('{"name":"a"},"params":{"name":"b"}'), { name: { value: 'b' } }],
    ['two URIs', call('{"uri":"a:1","uri":"a:2"}'), { uri: { value: 'a:2' } }],
    ['params without a name', call('{"name":"a"},"params":{}'), { name: undefined }],
    ['two refs', call('{"ref":{"name":"a"},"ref":{"type":"b"}}'), { reference: { name: undefined } }],
    [
      'two names of a ref',
      call('{"ref":{"name":"a","n\\u0061me":"b"}}'),
      { reference: { name: { value: 'b' } } },
    ],
    ['an invalid ref', call('{"ref":{"name":"a"},"ref":5}'), { reference: { name: undefined } }],
  ])('is rebuilt to have one reading: %s', (_what, text, expected) => {
    const message = read(text);
    expect(message).toMatchObject(expected);
    expect(message.bytes.toString()).toBe(JSON.stringify(JSON.parse(text)));
  });

  it('keeps one progress token', () => {
    const once = read(call('{"_meta":{"progressToken":1,"progressToken":2}}'));
    expect(textAt(once, once.wantedProgress)).toBe('2');
    const gone = read(call('{"_meta":{"progressToken":1},"_meta":null}'));
    expect(gone.wantedProgress).toBeUndefined();
  });

  it('keeps everything else as written', () => {
    const args = '{"big":12345678901234567890,"far":1e400,"half":"\\ud800","__proto__":{"x":1.0}}';
    const message = read(call(`{"name":"a","name":"b","arguments":${args}}`));
    expect(message.bytes.toString()).toBe(call(`{"name":"b","arguments":${args}}`));
  });

  it.each([
    ['Name', call('{"name":"a","Name":"b"}')],
    ['ID', '{"jsonrpc":"2.0","id":1,"method":"m","ID":2}'],
    ['PARAMS', '{"jsonrpc":"2.0","id":1,"method":"m","PARAMS":{}}'],
    ['param\u017f', '{"jsonrpc":"2.0","id":1,"method":"m","param\u017f":{}}'],
    ['_META', call('{"_META":{}}')],
    ['progressto\u212aen', call('{"_meta":{"progressto\u212aen":1}}')],
    ['progresstoken', call('{"_meta":{"progresstoken":1}}')],
    ['Type', call('{"ref":{"type":"a","Type":"b"}}')],
    ['Name', call('{"n\\u0061me":"a","\\u004eame":"b"}')],
  ])('is rejected if some parsers mistake %s for a known key', (written, text) => {
    expect(() => read(text)).toThrow(`The key "${written}" is misspelled`);
  });

  it('is not detected in similar keys elsewhere', () => {
    for (const text of [
      call('{"Error":1,"Id":2,"arguments":{"Name":"a","name":"b","NAME":"c"}}'),
      call('{"URL":1}'),
    ]) {
      expect(read(text).bytes.toString()).toBe(text);
    }
  });
});

/** Asserts that parsers that use the first of two keys, or ignore case, read the same. */
function expectOneReading(bytes: Buffer, at: number, known: readonly string[]): void {
  const scanner = new JsonScanner(bytes, at);
  const keys: string[] = [];
  scanner.object((start, end) => {
    keys.push(JSON.parse(`"${bytes.toString('utf8', start, end)}"`) as string);
    scanner.skip(0);
  });
  const alike = keys.map((key) => key.toLowerCase()).filter((key) => known.includes(key));
  expect(new Set(alike).size).toBe(alike.length);
  expect(keys.filter((key) => known.includes(key))).toHaveLength(alike.length);
}

interface Parsed {
  id: unknown;
  method: unknown;
  params?: { name?: unknown; uri?: unknown; _meta?: unknown };
}

describe('any message', () => {
  const ids = fc.oneof(numberTexts, stringTexts, jsonTexts.value);
  const names = fc.oneof(stringTexts, fc.constantFrom('"alpha"', '"al\\u0070ha"'));

  it('is rejected, or has one reading, the one of JSON.parse', () => {
    let accepted = 0;
    fc.assert(
      fc.property(callTexts(ids, names), (text) => {
        const message = attempt(text);
        if (typeof message === 'string') return;
        accepted++;
        const parsed = JSON.parse(text) as Parsed;
        const { bytes, params } = message;
        expect(JSON.parse(bytes.toString())).toEqual(parsed);
        expect(message.method).toBe(parsed.method);
        expect(typeof message.id === 'bigint' ? Number(message.id) : message.id).toEqual(parsed.id);
        const { name, uri, _meta: meta } = parsed.params!;
        expect(message.name?.value).toBe(typeof name === 'string' ? name : undefined);
        expect(message.uri?.value).toBe(typeof uri === 'string' ? uri : undefined);
        const token = (meta as { progressToken?: unknown } | null | undefined)?.progressToken;
        const wanted = textAt(message, message.wantedProgress);
        expect(wanted === undefined ? undefined : JSON.parse(wanted)).toEqual(token);
        expectOneReading(bytes, 0, ['jsonrpc', 'id', 'method', 'params', 'result', 'error']);
        expectOneReading(bytes, params!.start, ['name', 'uri', 'ref', '_meta']);
      }),
      { numRuns: 1_500 },
    );
    expect(accepted).toBeGreaterThan(300);
  });
});

describe('a batch', () => {
  it('is split into its messages, as written', () => {
    fc.assert(
      fc.property(fc.array(jsonTexts.value), (texts) => {
        const batch = splitBatch(Buffer.from(` [ ${texts.join(' ,\n')} ] `))!;
        expect(batch.map(String)).toEqual(texts.map((text) => text.trim()));
      }),
    );
  });

  it('must be an array', () => {
    expect(splitBatch(Buffer.from(' {"a":[]}'))).toBeUndefined();
    expect(splitBatch(Buffer.from('\uFEFF[]'))).toBeUndefined();
    expect(() => splitBatch(Buffer.from('[1,]'))).toThrow('not valid JSON');
    expect(() => splitBatch(Buffer.from('[1] []'))).toThrow('not valid JSON');
  });
});

import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonical, parseExactly } from '../helpers/exact-json.ts';
import { callTexts, numberTexts, stringTexts } from '../helpers/json-text.ts';
import { RawSession, type RpcMessage } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

/** Both servers offer the same tools; only one has `solo`. */
const tools: Record<string, { server: string; own: string }> = {
  one__alpha: { server: 'one', own: 'alpha' },
  one__beta: { server: 'one', own: 'beta' },
  two__alpha: { server: 'two', own: 'alpha' },
  two__beta: { server: 'two', own: 'beta' },
  solo: { server: 'two', own: 'solo' },
  two__solo: { server: 'two', own: 'solo' },
};
const parseError = -32700;
const invalidRequest = -32600;
const invalidParams = -32602;

let switchboard: RunningSwitchboard;
let session: RawSession;

setUp(async (use) => {
  switchboard = use(
    await startSwitchboard({
      one: fixtureServer('echoes-requests', {}, 'one', 'alpha', 'beta'),
      two: fixtureServer('echoes-requests', {}, 'two', 'alpha', 'beta', 'solo'),
    }),
  );
  session = await RawSession.open(switchboard.url);
  await session.toolNames();
});

interface Heard {
  name: string;
  line: string;
  method: string;
  params: Record<string, unknown>;
}

interface Sent {
  id: unknown;
  method: string;
  params: { name: string; _meta?: { progressToken?: unknown } | null };
}

/** Posts the exact bytes; the response is always one JSON message. */
async function post(body: string | Buffer): Promise<{ message: RpcMessage; text: string }> {
  const { json, text } = await session.post(body, { accept: 'application/json' });
  return { message: json!, text };
}

/** Checks that the server that JSON.parse selects got the same content, with its own tool name and the gateway's id and token. */
function expectSameReading(body: string, answer: string, heard: Heard): void {
  const sent = parseExactly(body) as Sent;
  const read = parseExactly(heard.line) as Sent;
  const { server, own } = tools[sent.params.name]!;
  expect(heard).toMatchObject({ name: server, method: 'tools/call', params: { name: own } });
  expect(canonical((parseExactly(answer) as Sent).id)).toBe(canonical(sent.id));
  const token = sent.params._meta?.progressToken;
  if (token !== undefined) {
    expect(canonical(read.params._meta!.progressToken)).toBe(canonical(read.id));
    read.params._meta!.progressToken = token;
  }
  read.params.name = sent.params.name;
  read.id = sent.id;
  expect(canonical(read)).toBe(canonical(sent));
}

/** Returns the error code, or 0 if a server has read the same content. */
async function relay(body: string | Buffer): Promise<number> {
  const { message, text } = await post(body);
  if (message.error !== undefined) return message.error.code;
  expect(isUtf8(Buffer.from(body))).toBe(true);
  expectSameReading(body.toString(), text, message.result!.parrot as Heard);
  return 0;
}

function callWith(callArguments: string): string {
  return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"two__alpha","arguments":${callArguments}}}`;
}

function callAround(before: string, after: string): string {
  return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{${before}"name":"one__alpha"${after}}}`;
}

describe('a call reaches the named server unchanged,', () => {
  it.each([
    ['in the plainest form', callWith('{}')],
    [
      'pretty-printed',
      JSON.stringify(JSON.parse(callWith('{"a":[1,{"b":null}]}')), null, 2).replaceAll('\n', '\r\n'),
    ],
    [
      'with params before the method',
      '{"params":{"name":"solo"},"method":"tools/call","id":1,"jsonrpc":"2.0"}',
    ],
    [
      'with look-alikes inside',
      callWith('{"name":"one__beta","params":{"name":"solo"},"id":9,"method":"x"}'),
    ],
    ['with look-alikes of another case inside', callWith('{"Name":"solo","NAME":1,"ID":2,"Params":{}}')],
    ['with keys twice inside', callWith('{"a":1,"a":2,"name":3,"name":4}')],
    ['with 64-bit numbers', callWith('{"a":18446744073709551615,"b":-9223372036854775808}')],
    ['with numbers that no double holds', callWith('[1e400,-1e-400,0.1234567890123456789012345,1E5,1.0,-0]')],
    ['with a 64-bit id', callWith('{}').replace('7', '9223372036854775807')],
    ['with an id of 1.0', callWith('{}').replace('7', '1.0')],
    ['with an id that is text', callWith('{}').replace('7', '"7\\u0000\\ud800"')],
    ['with halves of surrogate pairs', callWith('{"\\ud83d":"\\ude00","pair":"\\ud83d\\ude00"}')],
    ['with separators that end lines elsewhere', callWith('"\u2028\u2029\u0085"')],
    ['with characters of every length', callWith('{"é":"€😀\u007f"}')],
    ['with an escaped name', callWith('{}').replace('two__alpha', 'two__\\u0061lpha')],
    ['with an escaped method', callWith('{}').replace('tools/call', 'tools\\/c\\u0061ll')],
    ['with a progress token', callAround('', ',"_meta":{"progressToken":"mine","other":1.50}')],
    ['with a progress token that is a huge number', callAround('"_meta":{"progressToken":1e999},', '')],
    ['with 500 levels', callWith(`${'[{"a":'.repeat(250)}1${'}]'.repeat(250)}`)],
    [
      'with keys that mean something to JavaScript',
      callWith('{"__proto__":{"a":1},"constructor":{"prototype":2}}'),
    ],
    ['with unknown members', callAround('"task":{"ttl":1},', ',"x":[1.0]').replace('"id"', '"more":-0,"id"')],
    ['with a large argument', callWith(JSON.stringify('ü"\\'.repeat(100_000)))],
  ])('%s', async (_how, body) => {
    expect(await relay(body)).toBe(0);
  });
});

describe('a call with two readings is reduced to the one that was routed:', () => {
  it.each([
    ['two names', callAround('"name":"two__beta",', '')],
    ['two names, the last with an escape', callAround('', ',"na\\u006de":"two__beta"')],
    ['two names, the first with an escape', callAround('"\\u006eame":"two__beta",', '')],
    ['a name that is no text before one that is', callAround('"name":{"a":1},', '')],
    ['two params', callWith('{}').replace('"params"', '"params":{"name":"one__beta"},"params"')],
    [
      'two params, one with an escape',
      callWith('{}').replace('"params"', '"p\\u0061rams":{"name":"one__beta"},"params"'),
    ],
    ['two methods', callWith('{}').replace('"method"', '"method":"ping","method"')],
    ['two ids', callWith('{}').replace('"id"', '"id":8,"id"')],
    ['two ids, one with an escape', callWith('{}').replace('"id"', '"\\u0069d":8,"id"')],
    ['two versions', callWith('{}').replace('"jsonrpc"', '"jsonrpc":"1.0","jsonrpc"')],
    ['two progress tokens', callAround('', ',"_meta":{"progressToken":1,"progressToken":2}')],
    [
      'two progress tokens, one with an escape',
      callAround('', ',"_meta":{"progressToken":1,"progressT\\u006fken":2}'),
    ],
    ['two _meta', callAround('"_meta":{"progressToken":1},', ',"_meta":{"a":1.0}')],
    ['two arguments', callAround('"arguments":{"a":1},', ',"arguments":{"b":12345678901234567890}')],
  ])('%s', async (_how, body) => {
    expect(await relay(body)).toBe(0);
  });

  it('and a server that takes the first of two names reads the same', async () => {
    const { message } = await post(callAround('"name":"two__beta",', ',"n\\u0061me":"one__beta"'));
    const { name, line } = message.result!.parrot as Heard;
    expect(name).toBe('one');
    expect(line.match(/"name"|\\u/g)).toEqual(['"name"']);
    expect(line).toContain('"name":"beta"');
  });
});

describe('a message without a unique reading is rejected:', () => {
  it.each([
    ['Name beside name', callAround('', ',"Name":"two__beta"'), invalidRequest],
    ['Name alone', callAround('', '').replace('"name"', '"Name"'), invalidRequest],
    ['ID beside id', callWith('{}').replace('"id"', '"ID":8,"id"'), invalidRequest],
    ['METHOD beside method', callWith('{}').replace('"method"', '"METHOD":"ping","method"'), invalidRequest],
    [
      'a letter that some parsers take for another',
      callWith('{}').replace(/}$/, ',"param\u017f":{}}'),
      invalidRequest,
    ],
    ['the last name is no text', callAround('', ',"name":null'), invalidParams],
    ['the last params have no name', callWith('{}').replace(/}$/, ',"params":{}}'), invalidParams],
    ['the last params are no object', callWith('{}').replace(/}$/, ',"params":[]}'), invalidRequest],
    ['a byte order mark', `\uFEFF${callWith('{}')}`, parseError],
    ['something behind it', `${callWith('{}')}{}`, parseError],
    ['a control character in a text', callWith('"\u0001"'), parseError],
    ['a line break in a text', callWith('"\n"'), parseError],
    ['a comment', callWith('{}/**/'), parseError],
    ['a trailing comma', callWith('{"a":1,}'), parseError],
    ['a number with a plus', callWith('+1'), parseError],
    ['a number with a leading zero', callWith('01'), parseError],
    ['NaN', callWith('NaN'), parseError],
    ['single quotes', callWith("{'a':1}"), parseError],
    ['a white space that JSON does not have', callWith('\u00a0{}'), parseError],
    ['too many levels', callWith('['.repeat(600) + ']'.repeat(600)), parseError],
    ['no end', callWith('{}').slice(0, -1), parseError],
    ['nothing', '', parseError],
    ['UTF-8 with a byte too much', Buffer.from(callWith('"\xff"'), 'latin1'), parseError],
    ['UTF-8 that is cut', Buffer.from(callWith('"\xe2\x82"'), 'latin1'), parseError],
    ['UTF-8 in a longer form than it needs', Buffer.from(callWith('"\xc0\xaf"'), 'latin1'), parseError],
    ['UTF-8 of half a pair', Buffer.from(callWith('"\xed\xa0\x80"'), 'latin1'), parseError],
    ['UTF-16', Buffer.from(callWith('{}'), 'utf16le'), parseError],
  ])('%s', async (_what, body, code) => {
    expect(await relay(body)).toBe(code);
  });
});

describe('another request with a name', () => {
  it.each([
    ['prompts/get', '{"name":"one__beta","name":"two__alpha"}', { name: 'alpha' }],
    ['prompts/get', '{"name":0,"\\u006eame":"two__alpha","arguments":{"a":"1"}}', { name: 'alpha' }],
    [
      'resources/read',
      '{"uri":"resource://one/parrot:beta","u\\u0072i":"resource://two/parrot:alpha"}',
      { uri: 'parrot:alpha' },
    ],
    [
      'completion/complete',
      '{"ref":{"type":"ref/prompt","name":"one__beta"},"ref":{"name":0,"type":"ref/prompt","name":"two__alpha"}}',
      { ref: { type: 'ref/prompt', name: 'alpha' } },
    ],
    [
      'completion/complete',
      '{"ref":{"type":"ref/resource","uri":"resource://one/x:{a}","uri":"resource://two/x:{a}"}}',
      { ref: { type: 'ref/resource', uri: 'x:{a}' } },
    ],
  ])('has one reading too: %s of %s', async (method, params, expected) => {
    const { message } = await post(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`);
    expect(message.result?.parrot).toMatchObject({ name: 'two', method, params: expected });
  });

  it('is rejected if the last name is invalid', async () => {
    const body = (ref: string) =>
      `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"alpha"},${ref}}}`;
    for (const ref of ['"ref":5', '"ref":{"type":"ref/prompt"}', '"ref":{"type":7,"name":8}', '"Ref":{}']) {
      const { message } = await post(body(ref));
      expect(message.error?.code).toBeLessThan(0);
    }
  });
});

describe('any call', () => {
  it('is rejected, or reaches the selected server unchanged', async () => {
    const ids = fc.oneof(numberTexts, stringTexts);
    const names = fc.oneof(
      { arbitrary: fc.constantFrom(...Object.keys(tools)).map((name) => JSON.stringify(name)), weight: 9 },
      fc.constantFrom('"two__\\u0061lpha"', '"nobody"', '"alpha"', '7'),
    );
    let relayed = 0;
    await fc.assert(
      fc.asyncProperty(callTexts(ids, names), async (body) => {
        if ((await relay(body)) === 0) relayed++;
      }),
      { numRuns: 150 },
    );
    expect(relayed).toBeGreaterThan(40);
  });
});

import fc from 'fast-check';
import { describe as about, expect, it } from 'vitest';
import { jsonTexts } from '../../test/helpers/json-text.ts';
import { readMessage } from './message-reader.ts';
import {
  describe,
  describedMembers,
  isDescribed,
  SUBSCRIPTION_KEY,
  subscribedAs,
  undescribe,
} from './self-description.ts';
import { splice } from './splice.ts';

const description = {
  capabilities: { elicitation: {}, extensions: { 'a/b': { n: 1 } } },
  clientInfo: { name: 'one', version: '1' },
  logLevel: 'info',
};
const members = describedMembers(description);
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': description.clientInfo,
  'io.modelcontextprotocol/clientCapabilities': description.capabilities,
  'io.modelcontextprotocol/logLevel': 'info',
};

const space = fc.constantFrom('', ' ', '\n\t');
const metaMembers = fc
  .uniqueArray(fc.constantFrom('"progressToken":7', '"projectId":"p"', '"a/b":{"c":[1.0]}', '"x":null'))
  .chain((list) => fc.tuple(fc.constant(list), space, space))
  .map(([list, before, after]) => `{${before}${list.join(`${after},${before}`)}${after}}`);
const metas = fc.oneof(metaMembers, fc.constant(undefined));
const requests = fc
  .record({
    meta: metas,
    rest: fc.uniqueArray(
      fc.constantFrom('"name":"t"', '"arguments":{"_meta":{"io.modelcontextprotocol/x":1}}', '"z":[]'),
    ),
    isFirst: fc.boolean(),
    hasParams: fc.boolean(),
    blank: space,
  })
  .map(({ meta: own, rest, isFirst, hasParams, blank }) => {
    const inner = own === undefined ? [] : [`"_meta":${own}`];
    const params = (isFirst ? [...inner, ...rest] : [...rest, ...inner]).join(`${blank},`);
    return `{"jsonrpc":"2.0",${blank}"id":1,"method":"tools/call"${hasParams ? `,"params":{${blank}${params}}` : ''}${blank}}`;
  });

function isReadable(value: string): boolean {
  try {
    return (
      readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":${value}}}`)) !==
      undefined
    );
  } catch {
    return false;
  }
}

function described(text: string): string {
  const message = readMessage(Buffer.from(text));
  return splice(message.bytes, [describe(message, members)]).toString();
}

about('a request that describes its sender', () => {
  it('has the description in its _meta, next to all other members', () => {
    fc.assert(
      fc.property(requests, (text) => {
        const before = JSON.parse(text) as { params?: { _meta?: object } };
        const after = described(text);
        expect(JSON.parse(after)).toEqual({
          ...before,
          params: { ...before.params, _meta: { ...meta, ...before.params?._meta } },
        });
        expect(isDescribed(readMessage(Buffer.from(after)))).toBe(true);
      }),
    );
  });

  it('is restored when the description is removed', () => {
    fc.assert(
      fc.property(requests, (text) => {
        const message = readMessage(Buffer.from(described(text)));
        const again = splice(message.bytes, undescribe(message)).toString();
        const before = JSON.parse(text) as { params?: { _meta?: object } };
        expect(JSON.parse(again)).toEqual({
          ...before,
          params: { ...before.params, _meta: before.params?._meta ?? {} },
        });
        expect(isDescribed(readMessage(Buffer.from(again)))).toBe(false);
      }),
    );
  });

  it('has an object as _meta, whatever it was', () => {
    fc.assert(
      fc.property(jsonTexts.value, (value) => {
        // Ambiguous keys are rejected earlier.
        fc.pre(isReadable(value));
        const text = described(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":${value}}}`);
        expect(JSON.parse(text)).toMatchObject({ params: { _meta: meta } });
      }),
    );
  });

  it('keeps every other byte', () => {
    const text =
      '{ "jsonrpc":"2.0", "id":1.0e0 ,"method":"m","params":{"n":[1.0,1e400],"_meta":{ "x":12345678901234567890 }}}';
    const message = readMessage(Buffer.from(text));
    expect(described(text).replace(`${members.toString()},`, '')).toBe(message.bytes.toString());
  });
});

about('a notification of a subscription', () => {
  const id = Buffer.from('"mine"');
  const subscribed = (text: string, as: Buffer | undefined) => {
    const message = readMessage(Buffer.from(text));
    return JSON.parse(splice(message.bytes, subscribedAs(message, as)).toString()) as { params?: object };
  };
  it.each([
    [
      'has one',
      `{"jsonrpc":"2.0","method":"n","params":{"uri":"u","_meta":{"${SUBSCRIPTION_KEY}":12,"x":1}}}`,
    ],
    ['has a _meta', '{"jsonrpc":"2.0","method":"n","params":{"uri":"u","_meta":{"x":1}}}'],
  ])('gets its subscription id if it %s', (_what, text) => {
    expect(subscribed(text, id).params).toEqual({
      uri: 'u',
      _meta: { [SUBSCRIPTION_KEY]: 'mine', x: 1 },
    });
    expect(subscribed(text, undefined).params).toEqual({ uri: 'u', _meta: { x: 1 } });
  });

  it('gets its subscription id if it has no _meta, or one that is not an object', () => {
    expect(subscribed('{"jsonrpc":"2.0","method":"n","params":{}}', id).params).toEqual({
      _meta: { [SUBSCRIPTION_KEY]: 'mine' },
    });
    expect(subscribed('{"jsonrpc":"2.0","method":"n","params":{"_meta":null}}', id).params).toEqual({
      _meta: { [SUBSCRIPTION_KEY]: 'mine' },
    });
  });
});

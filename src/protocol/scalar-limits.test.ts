import { describe, expect, it } from 'vitest';
import { idValue } from './message.ts';
import { readMessage, splitBatch } from './message-reader.ts';

const read = (text: string) => readMessage(Buffer.from(text));
const digits = (count: number) => '7'.repeat(count);
const quoted = (count: number) => JSON.stringify('x'.repeat(count - 2));

describe('a message with ids and names of the maximum length', () => {
  it.each([
    ['an integer', digits(1_024)],
    ['a string', quoted(1_024)],
  ])('accepts %s as an id', (_what, id) => {
    const { kind, idSpan } = read(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
    expect(kind).toBe('request');
    expect(idSpan!.end - idSpan!.start).toBe(1_024);
  });

  it('accepts a name, a URI, a task and tokens', () => {
    const [short, long] = [quoted(1_024), quoted(64 * 1024)];
    const params = `{"name":${short},"uri":${long},"taskId":${quoted(8_192)},"_meta":{"progressToken":${digits(1_024)}}}`;
    expect(read(`{"jsonrpc":"2.0","id":1,"method":"x","params":${params}}`).uri?.value).toHaveLength(65_534);
  });
});

describe('a message is rejected', () => {
  it.each([
    ['id', '', `"id":${digits(1_025)}`],
    ['id', '', `"id":${quoted(1_025)}`],
    ['method', '', `"id":1,"method":${quoted(1_025)}`],
    ['name', `"name":${quoted(1_025)}`],
    ['URI', `"uri":${quoted(65_537)}`],
    ['name of the reference', `"ref":{"type":"ref/prompt","name":${quoted(1_025)}}`],
    ['URI of the reference', `"ref":{"type":"ref/resource","uri":${quoted(65_537)}}`],
    ['taskId', `"taskId":${quoted(8_193)}`],
    ['requestId', `"requestId":${digits(1_025)}`],
    ['progressToken', `"progressToken":${digits(1_025)}`],
    ['progressToken in _meta', `"_meta":{"progressToken":${quoted(1_025)}}`],
    ['projectId in _meta', `"_meta":{"projectId":${quoted(1_025)}}`],
    ['subscriptionId in _meta', `"_meta":{"io.modelcontextprotocol/subscriptionId":${digits(1_025)}}`],
  ])('if its %s is longer', (what, params, rest = '"id":1') => {
    const method = rest.includes('"method"') ? '' : ',"method":"x"';
    expect(() => read(`{"jsonrpc":"2.0",${rest}${method},"params":{${params}}}`)).toThrow(
      `The ${what} is longer than`,
    );
  });

  it('as a response too, without converting its id to a number', () => {
    const id = digits(5_000);
    expect(() => read(`{"jsonrpc":"2.0","id":${id},"result":{}}`)).toThrow(
      'The id is longer than 1024 bytes',
    );
    expect(idValue(Buffer.from(id), { start: 0, end: id.length })).toBeUndefined();
  });
});

describe('a batch', () => {
  it('is rejected unread if batches are not accepted', () => {
    expect(() => read('[ this is not JSON')).toThrow('The message is not a JSON object.');
  });

  it('has at most a thousand messages, and the rest is not read', () => {
    const messages = Array.from({ length: 1_000 }, () => '{}').join();
    expect(splitBatch(Buffer.from(`[${messages}]`))).toHaveLength(1_000);
    expect(() => splitBatch(Buffer.from(`[${messages}, this is not JSON`))).toThrow(
      'The batch has more than 1000 messages: send several smaller ones.',
    );
  });
});

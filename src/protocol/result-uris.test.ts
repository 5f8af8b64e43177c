import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyCuts, cut } from '../../test/helpers/chunks.ts';
import { jsonTexts } from '../../test/helpers/json-text.ts';
import { mayHoldUris, resultUriSpans } from './result-uris.ts';
import { splice } from './splice.ts';

interface Read {
  result: { contents: unknown[] };
}

function urisOf(method: string, answer: unknown): string[] {
  const bytes = Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer));
  return resultUriSpans(method, bytes).map(({ start, end }) =>
    JSON.parse(bytes.toString('utf8', start, end)),
  );
}

function mayHold(method: string, text: string): boolean {
  return mayHoldUris(method, [Buffer.from(text)]);
}

describe('the URIs of a result', () => {
  it('of a tool are in links and embedded resources', () => {
    const content = [
      { type: 'text', text: 'a:0', uri: 'a:1' },
      { type: 'resource_link', uri: 'a:2', name: 'x', _meta: { uri: 'no:1' } },
      { type: 'resource', resource: { uri: 'a:3', text: '{"uri":"no:2"}' }, annotations: { uri: 'no:3' } },
      { type: 'resource', resource: ['no:4'], uri: { uri: 'no:5' } },
    ];
    const result = { content, structuredContent: { content: [{ uri: 'no:6' }] }, uri: 'no:7' };
    expect(urisOf('tools/call', { jsonrpc: '2.0', id: 1, result })).toEqual(['a:1', 'a:2', 'a:3']);
  });

  it('of a prompt are in the content of its messages, one or many', () => {
    const messages = [
      { role: 'user', content: { type: 'resource', resource: { uri: 'a:1' } } },
      { role: 'user', content: [{ type: 'resource_link', uri: 'a:2' }, { each: { uri: 'no:1' } }] },
      { role: 'user', content: { each: { uri: 'no:2' } } },
    ];
    expect(urisOf('prompts/get', { result: { messages } })).toEqual(['a:1', 'a:2']);
  });

  it('of a read resource are in its contents', () => {
    const contents = [{ uri: 'a:1', text: '' }, { uri: 'a:2', blob: '' }, { resource: { uri: 'no:1' } }];
    expect(urisOf('resources/read', { result: { contents } })).toEqual(['a:1', 'a:2']);
  });

  it('of other methods are ignored', () => {
    expect(urisOf('completion/complete', { result: { contents: [{ uri: 'a:1' }] } })).toEqual([]);
    expect(urisOf('toString', { result: { contents: [{ uri: 'a:1' }] } })).toEqual([]);
  });

  it('are found under duplicate and escaped keys', () => {
    const text = '{"result":{"content":[{"uri":"a:1","\\u0075ri":"a:2"}],"cont\\u0065nt":[{"uri":"a:3"}]}}';
    expect(urisOf('tools/call', text)).toEqual(['a:1', 'a:2', 'a:3']);
  });

  it('of a large result are searched only in its content, if that comes first and is short', () => {
    const rows = Array.from({ length: 500 }, (_, index) => ({
      type: 'resource',
      resource: { uri: `no:${index}` },
    }));
    const link = { type: 'resource_link', uri: 'a:1' };
    const plain = { type: 'text', text: '] }' };
    const many = Array.from({ length: 200 }, () => plain);
    const mayHoldIn = (result: object, open = '{"jsonrpc":"2.0","id":1,"result":') => {
      const bytes = Buffer.from(`${open}${JSON.stringify(result)}}`);
      return mayHoldUris('tools/call', cut(bytes, [3_000]));
    };
    expect(mayHoldIn({ content: [plain], structuredContent: { rows } })).toBe(false);
    expect(mayHoldIn({ content: [link], structuredContent: { rows } })).toBe(true);
    expect(mayHoldIn({ content: [...many, link] })).toBe(true);
    expect(mayHoldIn({ structuredContent: { result: { content: [] } }, content: [link, ...many] })).toBe(
      true,
    );
    expect(mayHoldIn({ content: [plain], structuredContent: { rows } }, '{"x":{},"result":')).toBe(true);
  });

  it('are not searched in invalid JSON', () => {
    expect(() => urisOf('tools/call', '{"result":{"content":[{"uri":"a:1"]}}')).toThrow(
      "expected ',' or '}'",
    );
  });

  it('can be changed without changing anything else', () => {
    fc.assert(
      fc.property(fc.array(jsonTexts.value), fc.webUrl(), (more, uri) => {
        const contents = [...more, `{"text":"x" , "uri" : ${JSON.stringify(uri)}}`].join(',');
        const bytes = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{"contents":[${contents}]}}`);
        const marked = resultUriSpans('resources/read', bytes).map(({ start }) => ({
          start: start + 1,
          end: start + 1,
          bytes: Buffer.from('p:'),
        }));
        const before = (JSON.parse(bytes.toString()) as Read).result.contents;
        const after = (JSON.parse(splice(bytes, marked).toString()) as Read).result.contents;
        expect(after.at(-1)).toEqual({ text: 'x', uri: `p:${uri}` });
        expect(after.map(withoutUri)).toEqual(before.map(withoutUri));
      }),
    );
  });
});

function withoutUri(content: unknown): unknown {
  if (typeof content !== 'object' || content === null || Array.isArray(content)) return content;
  return Object.fromEntries(Object.entries(content).filter(([key]) => key !== 'uri'));
}

describe('the check whether a result may contain URIs', () => {
  it('does not parse it', () => {
    expect(mayHold('tools/call', '{"content":[{"type":"resource_link","uri":"a:1"}]}')).toBe(true);
    expect(mayHold('prompts/get', '{"content":[{"type":"resource"}]}')).toBe(true);
    expect(mayHold('tools/call', '{"content":[{"type":"text","text":"a resource"}]}')).toBe(false);
    expect(mayHold('resources/read', '{}')).toBe(true);
    expect(mayHold('completion/complete', '{"type":"resource"}')).toBe(false);
    expect(mayHold('toString', '{"type":"resource"}')).toBe(false);
  });

  it('works however the result is split', () => {
    const padding = fc.string({ maxLength: 30 });
    fc.assert(
      fc.property(padding, padding, anyCuts, (before, after, cuts) => {
        const chunks = (text: string) => cut(Buffer.from(text), cuts).filter(({ length }) => length > 0);
        expect(mayHoldUris('tools/call', chunks(`${before}"resource${after}`))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('needs few searches in a text full of partial matches', () => {
    let searches = 0;
    const counted = (text: string) => {
      const chunk = Buffer.from(text);
      return Object.assign(chunk, {
        indexOf(...where: Parameters<Buffer['indexOf']>) {
          searches++;
          return Buffer.prototype.indexOf.apply(chunk, where);
        },
      });
    };
    const chunks = Array.from({ length: 64 }, () => counted(`${'urce'.repeat(120)}${'x'.repeat(65_000)}`));
    expect(mayHoldUris('tools/call', chunks)).toBe(false);
    expect(searches).toBe(64 * 121);
    searches = 0;
    expect(mayHoldUris('tools/call', [counted('urce'.repeat(100_000))])).toBe(true);
    expect(searches).toBeLessThan(1_000);
  });
});

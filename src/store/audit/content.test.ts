import { describe, expect, it } from 'vitest';
import { newKey } from '../../identity/keys.ts';
import { boundedContent } from './content.ts';
import { maskedSubject } from './mask.ts';

const MAX_BYTES = 16 * 1024;

const variable = (name: string) => `\${${name}}`;

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

describe('the content of entries', () => {
  it('is kept as it is if it is small', () => {
    const content = { name: 'a', list: [1, 'two', null, { three: true }], at: new Date(0) };
    expect(boundedContent(content)).toEqual({ ...content, at: '1970-01-01T00:00:00.000Z' });
    expect([undefined, null].map(boundedContent)).toEqual([null, null]);
  });

  it('shows the command, however large the rest is', () => {
    const args = ['http://evil', ...Array.from({ length: 1_000 }, (_, index) => `${index}`.repeat(500))];
    const variables = Array.from({ length: 1_000 }, (_, index) => [`NAME_${index}`, 'x'.repeat(17_000)]);
    const config = { args, env: Object.fromEntries(variables), command: 'curl-evil' };
    const kept = boundedContent({ id: 'i', name: 'evil', description: 'y'.repeat(2_000), config });
    expect(kept).toMatchObject({ id: 'i', name: 'evil', config: { command: 'curl-evil' } });
    expect(kept).toMatchObject({ config: { args: expect.arrayContaining(['http://evil']) } });
    expect(kept).toMatchObject({ config: { env: { NAME_0: '***', '…': { more: expect.any(Number) } } } });
    expect(bytesOf(kept)).toBeLessThanOrEqual(MAX_BYTES);
  });

  it('tells the length and the hash of texts that are cut', () => {
    const kept = boundedContent({ command: `rm${' '.repeat(20_000)}` });
    expect(kept).toMatchObject({
      command: expect.stringMatching(/^rm .*… \(20002 characters, SHA-256 \w{16}…\)$/),
    });
    const names = boundedContent({
      env: { [`A${'a'.repeat(20_000)}`]: '1', [`A${'a'.repeat(20_001)}`]: '2' },
    });
    expect(Object.keys((names as { env: object }).env)).toHaveLength(2);
  });

  it.each([
    [
      'a long list',
      Array.from({ length: 50_000 }, (_, index) => ({ id: `${index}`, name: 'ü'.repeat(100) })),
    ],
    ['many fields', Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`${index}`, 'yes']))],
    [
      'a wide tree',
      { a: Array.from({ length: 30 }, () => Array.from({ length: 30 }, () => Array(30).fill('z'))) },
    ],
    ['deep lists', JSON.parse('['.repeat(5_000) + ']'.repeat(5_000))],
    ['very deep lists', JSON.parse('['.repeat(100_000) + ']'.repeat(100_000))],
  ])('is bounded for %s', (_what, value) => {
    expect(bytesOf(boundedContent(value))).toBeLessThanOrEqual(MAX_BYTES);
  });

  it('has no value of variables and headers, unless it is a reference', () => {
    const config = {
      env: { FOO: 'SECRET1', REF: variable('REF'), DEFAULT: variable('X:-SECRET2') },
      environment: ['FOO=SECRET3', 'SECRET4', { name: 'FOO', value: 'SECRET5' }],
      headers: { 'x-foo': 'SECRET6', 'x-bar': ['SECRET7'], 'x-none': null },
    };
    expect(boundedContent({ manifest: { servers: [config] } })).toEqual({
      manifest: {
        servers: [
          {
            env: { FOO: '***', REF: variable('REF'), DEFAULT: '***' },
            environment: ['FOO=***', '***', { name: 'FOO', value: '***' }],
            headers: { 'x-foo': '***', 'x-bar': '***', 'x-none': null },
          },
        ],
      },
    });
  });

  it.each([
    [
      'http://user:SECRET@host:9/x?api_key=SECRET&q=SECRET#SECRET',
      'http://***@host:9/x?api_key=***&q=***#***',
    ],
    ['https://SECRET@host/a@b?SECRET', 'https://***@host/a@b?***'],
    ['https://host/path', 'https://host/path'],
    [
      `https://${variable('HOST')}/x?key=${variable('KEY')}`,
      `https://${variable('HOST')}/x?key=${variable('KEY')}`,
    ],
    [
      `https://${variable('USER')}:${variable('PASSWORD')}@host/`,
      `https://${variable('USER')}:${variable('PASSWORD')}@host/`,
    ],
    ['https://u:a/SECRET@host/', 'https://***@host/'],
  ])('has the URL %s as %s', (url, masked) => {
    expect(boundedContent({ config: { url } })).toEqual({ config: { url: masked } });
  });

  it('has no whole key', () => {
    const { id, text } = newKey();
    const kept = boundedContent({
      name: text,
      [text]: [`Bearer ${text}`],
      part: text.slice(0, -1),
      cut: `x${text}y`,
    });
    expect(JSON.stringify(kept)).not.toContain(text.slice(16, 24));
    expect(kept).toMatchObject({ name: `sbk_${id}…`, [`sbk_${id}…`]: [`Bearer sbk_${id}…`] });
  });
});

it('subjects are masked once, and cut', () => {
  const { id, text } = newKey();
  const masked = maskedSubject(`key ${text.replace('_', '%5F')} ${text}`);
  expect(masked).toBe(`key sbk%5F${id}… sbk_${id}…`);
  expect(maskedSubject(masked)).toBe(masked);
  expect(maskedSubject('x'.repeat(5_000))).toHaveLength(500);
});

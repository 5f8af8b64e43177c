import { describe, expect, it } from 'vitest';
import type { SealedSecret } from '../store/secrets.ts';
import { Vault } from './vault.ts';

/** Secrets with transparent seals. */
function sealed(values: Record<string, string>): SealedSecret[] {
  return Object.entries(values).map(([name, value]) => ({
    project_id: 'project',
    name,
    key_id: 'key',
    nonce: Buffer.alloc(12),
    ciphertext: Buffer.from(value),
    version: `version of ${value}`,
    created_at: new Date(0),
    updated_at: new Date(0),
  }));
}

function vaultOf(values: Record<string, string>, alwaysMasked?: string[]): Vault {
  const vault = new Vault(({ ciphertext }) => {
    if (ciphertext.length === 0) throw new Error('no key opens it');
    return ciphertext.toString();
  }, alwaysMasked);
  vault.replace(sealed(values));
  return vault;
}

describe('a vault', () => {
  it('masks values in any notation', () => {
    const vault = vaultOf({ TOKEN: 'a"b\\c d/e', PLAIN: '$1.+*(x)' });
    expect(vault.redact('it is a"b\\c d/e and $1.+*(x)!')).toBe('it is *** and ***!');
    expect(vault.redact(JSON.stringify({ key: 'a"b\\c d/e' }))).toBe('{"key":"***"}');
    expect(vault.redact(`?key=${encodeURIComponent('a"b\\c d/e')}`)).toBe('?key=***');
    expect(vault.redact(`/${encodeURI('a"b\\c d/e')}`)).toBe('/***');
  });

  it.each(['hunter2-hunter2', 'a/b+c=d e/ü"\\', 'abcd'])('masks %j in all usual encodings', (value) => {
    const vault = vaultOf({ TOKEN: value });
    const hex = Buffer.from(value).toString('hex');
    const ascii = JSON.stringify(value).replace('ü', '\\u00fc');
    const url = encodeURIComponent(value);
    const small = url.replace(/%../g, (code) => code.toLowerCase());
    for (const text of [hex, hex.toUpperCase(), ascii, ascii.replaceAll('/', '\\/'), url, small]) {
      expect(vault.redact(`<${text}>`)).toMatch(/^<"?\*\*\*"?>$/);
    }
  });

  it.each([`a/b&c=<d> "e"'f`, 'two\nlines ü/', 'plain-value'])('masks %j if it is encoded twice', (value) => {
    const vault = vaultOf({ TOKEN: value });
    const html = (double: string, single: string) =>
      value
        .replace(/[&<>]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[sign]!)
        .replaceAll('"', double)
        .replaceAll("'", single);
    const url = encodeURIComponent(encodeURIComponent(value));
    const json = JSON.stringify(JSON.stringify(value).slice(1, -1)).slice(1, -1);
    const pages = [html('&quot;', '&#39;'), html('&#34;', '&#x27;'), html('"', "'"), html('&quot;', "'")];
    for (const text of [json, url, url.replace(/(?<=%25)../g, (code) => code.toLowerCase()), ...pages]) {
      expect(vault.redact(`<${text}>`)).toBe('<***>');
    }
  });

  it('masks the longer of two values with a common prefix, and each line of a value', () => {
    const vault = vaultOf({ SHORT: 'abcdef', LONG: 'abcdefghij', KEY: 'first line\nsecond line\n}' });
    expect(vault.redact('abcdefghij abcdef')).toBe('*** ***');
    expect(vault.redact('[stderr] second line')).toBe('[stderr] ***');
  });

  it('keeps words that are too short to be distinctive', () => {
    expect(vaultOf({ A: 'a', B: '' }).redact('a banana')).toBe('a banana');
  });

  it('returns the versions of the secrets that a server refers to', () => {
    const vault = vaultOf({ A: '1', B: '2' });
    expect(vault.versions(['B', 'C'])).toEqual({ B: 'version of 2' });
    expect([vault.value('A'), vault.value('C')]).toEqual(['1', undefined]);
  });

  it('reports a secret that cannot be opened, and masks the others', () => {
    const vault = vaultOf({ LOST: '', FOUND: 'sesame' });
    expect(() => vault.value('LOST')).toThrow('no key opens it');
    expect(vault.redact('open sesame')).toBe('open ***');
  });

  it.each([0, 1, 2, 3, 4, 5])('masks a value in base64 with %i bytes before it', (before) => {
    const value = 'sk-?>?>~~ü-abc';
    const vault = vaultOf({ TOKEN: value });
    for (const after of ['', '!', '!!']) {
      const bytes = Buffer.from(`${'u'.repeat(before)}${value}${after}`);
      for (const encoding of ['base64', 'base64url'] as const) {
        const shown = vault.redact(`Basic ${bytes.toString(encoding)}`);
        expect(shown).toMatch(/^Basic [\w+/-]{0,7}\*\*\*[\w+/-]{0,4}={0,2}$/);
      }
    }
  });

  it('masks the URL-encoded form of a value', () => {
    const value = `a|b c^d'"\`{é}`;
    const vault = vaultOf({ TOKEN: value });
    const url = new URL(`http://host/${value}/mcp?key=${value}&more#${value}`);
    url.password = value;
    url.username = value;
    expect(vault.redact(url.href)).toBe('http://***:***@host/***/mcp?key=***&more#***');
    expect(vault.redact(new URLSearchParams({ key: value }).toString())).toBe('key=***');
  });

  it('masks a value in a host name, which is lower case', () => {
    const vault = vaultOf({ TENANT: 'TenantÜber' });
    expect(vault.redact(new URL('https://TenantÜber.example/mcp').href)).toBe('https://***.example/mcp');
    expect(vaultOf({ URL: 'postgres://user:word@host/' }).redact('postgres')).toBe('postgres');
  });

  it('leaves nothing of overlapping values', () => {
    expect(vaultOf({ A: 'abcdef', B: 'defghi' }).redact('abcdefghi')).toBe('***');
  });

  it('still masks values that were changed or deleted after they were opened', () => {
    const vault = vaultOf({ CHANGED: 'old value', DELETED: 'gone value', UNUSED: 'never opened' });
    vault.value('CHANGED');
    vault.value('DELETED');
    vault.replace(sealed({ CHANGED: 'new value' }));
    expect(vault.redact('old value, gone value, new value')).toBe('***, ***, ***');
    expect(vault.redact('never opened')).toBe('never opened');
    vault.replace([]);
    expect(vault.redact('old value, gone value, new value')).toBe('***, ***, ***');
  });

  it('evicts the oldest of very many former values, and none in use', () => {
    const vault = vaultOf({ KEPT: 'kept value' });
    vault.value('KEPT');
    for (let index = 0; index <= 1_001; index++) {
      vault.replace(sealed({ KEPT: 'kept value', CHANGING: `<value ${index}>` }));
      vault.value('CHANGING');
    }
    expect(vault.redact('<value 0> <value 1> <value 1001> kept value')).toBe('<value 0> *** *** ***');
  });

  it('masks additional values', () => {
    expect(vaultOf({}, ['own key']).redact('my own key')).toBe('my ***');
  });

  it('masks secrets of any size', () => {
    const values = Array.from({ length: 20 }, (_, index) => `${index}-${'x"'.repeat(30_000)}`);
    const vault = vaultOf(Object.fromEntries(values.map((value, index) => [`S${index}`, value])));
    expect(vault.redact(`<${values[7]}>`)).toBe('<***>');
  });
});

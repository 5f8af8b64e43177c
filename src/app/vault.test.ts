import { describe, expect, it } from 'vitest';
import type { SealedSecret } from '../store/types.ts';
import { Vault } from './vault.ts';

/** A vault whose seals are transparent. */
function vaultOf(values: Record<string, string>): Vault {
  const vault = new Vault(({ ciphertext }) => {
    if (ciphertext.length === 0) throw new Error('no key opens it');
    return ciphertext.toString();
  });
  vault.replace(
    Object.entries(values).map(
      ([name, value]): SealedSecret => ({
        project_id: 'project',
        name,
        key_id: 'key',
        nonce: Buffer.alloc(12),
        ciphertext: Buffer.from(value),
        version: `version of ${value}`,
        created_at: new Date(0),
        updated_at: new Date(0),
      }),
    ),
  );
  return vault;
}

describe('a vault', () => {
  it('masks values however they are written', () => {
    const vault = vaultOf({ TOKEN: 'a"b\\c d/e', PLAIN: '$1.+*(x)' });
    expect(vault.redact('it is a"b\\c d/e and $1.+*(x)!')).toBe('it is *** and ***!');
    expect(vault.redact(JSON.stringify({ key: 'a"b\\c d/e' }))).toBe('{"key":"***"}');
    expect(vault.redact(`?key=${encodeURIComponent('a"b\\c d/e')}`)).toBe('?key=***');
    expect(vault.redact(`/${encodeURI('a"b\\c d/e')}`)).toBe('/***');
  });

  it('masks the longer one of two that begin alike, and each line of several', () => {
    const vault = vaultOf({ SHORT: 'abcdef', LONG: 'abcdefghij', KEY: 'first line\nsecond line\n}' });
    expect(vault.redact('abcdefghij abcdef')).toBe('*** ***');
    expect(vault.redact('[stderr] second line')).toBe('[stderr] ***');
  });

  it('leaves words alone that are too short to be told from others', () => {
    expect(vaultOf({ A: 'a', B: '' }).redact('a banana')).toBe('a banana');
  });

  it('knows which versions there are of what a server refers to', () => {
    const vault = vaultOf({ A: '1', B: '2' });
    expect(vault.versions(['B', 'C'])).toEqual({ B: 'version of 2' });
    expect([vault.value('A'), vault.value('C')]).toEqual(['1', undefined]);
  });

  it('says so where a secret cannot be opened, and masks the others', () => {
    const vault = vaultOf({ LOST: '', FOUND: 'sesame' });
    expect(() => vault.value('LOST')).toThrow('no key opens it');
    expect(vault.redact('open sesame')).toBe('open ***');
  });
});

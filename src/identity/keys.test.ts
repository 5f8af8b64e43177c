import { describe, expect, it } from 'vitest';
import { isKey, KEY_PREFIX, keyIdOf, newKey } from './keys.ts';

describe('a key', () => {
  it('has a prefix that scanners find, a public id, and a secret', () => {
    const { id, text, hash } = newKey();
    expect(text).toMatch(/^sbk_[A-Za-z0-9_-]{55}$/);
    expect(text.startsWith(KEY_PREFIX + id)).toBe(true);
    expect(id).toHaveLength(12);
    expect(hash).toHaveLength(32);
    expect(hash.includes(text)).toBe(false);
  });

  it('is never the same twice', () => {
    const made = Array.from({ length: 1_000 }, newKey);
    expect(new Set(made.map(({ id }) => id)).size).toBe(1_000);
    expect(new Set(made.map(({ text }) => text.slice(16))).size).toBe(1_000);
  });

  it('tells its id', () => {
    const { id, text } = newKey();
    expect(keyIdOf(text)).toBe(id);
  });

  it.each([
    ['too short', (text: string) => text.slice(0, -1)],
    ['too long', (text: string) => `${text}A`],
    ['in other case', (text: string) => text.toUpperCase()],
    ['with a line break', (text: string) => `${text}\n`],
    ['behind something', (text: string) => ` ${text}`],
    ['with another character', (text: string) => `${text.slice(0, -1)}=`],
    ['only the prefix', () => KEY_PREFIX],
    ['nothing', () => ''],
  ])('is not recognized %s', (_what, change) => {
    expect(keyIdOf(change(newKey().text))).toBeUndefined();
  });

  it('fits its own hash only', () => {
    const [one, other] = [newKey(), newKey()];
    expect(isKey(one.text, one.hash)).toBe(true);
    expect(isKey(one.text, other.hash)).toBe(false);
    const last = one.text.endsWith('A') ? 'B' : 'A';
    expect(isKey(one.text.slice(0, -1) + last, one.hash)).toBe(false);
    expect(isKey(one.text.slice(0, 16) + other.text.slice(16), one.hash)).toBe(false);
  });

  it('fits no hash that is unknown or damaged, and takes the same comparison', () => {
    const { text, hash } = newKey();
    expect(isKey(text, undefined)).toBe(false);
    expect(isKey(text, hash.subarray(1))).toBe(false);
    expect(isKey(text, Buffer.concat([hash, hash]))).toBe(false);
    expect(isKey(text, Buffer.alloc(0))).toBe(false);
  });
});

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyOf, parseKey, seal, unseal } from './keys.ts';

const key = keyOf(randomBytes(32));

describe('a sealed value', () => {
  it('is restored with the same key and context', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (value) => {
        expect(unseal(seal(value, key, 'place'), key, 'place')).toBe(value);
      }),
    );
  });

  it('looks different each time', () => {
    const [one, other] = [seal('value', key, 'place'), seal('value', key, 'place')];
    expect(one.nonce).not.toEqual(other.nonce);
    expect(one.ciphertext).not.toEqual(other.ciphertext);
  });

  it('does not open in another context, with another key, or with a flipped bit', () => {
    const sealed = seal('value', key, 'place');
    expect(() => unseal(sealed, key, 'another place')).toThrow();
    expect(() => unseal(sealed, keyOf(randomBytes(32)), 'place')).toThrow();
    for (let index = 0; index < sealed.ciphertext.length; index++) {
      const ciphertext = Buffer.from(sealed.ciphertext);
      ciphertext[index]! ^= 1;
      expect(() => unseal({ ...sealed, ciphertext }, key, 'place')).toThrow();
    }
  });
});

describe('a key as text', () => {
  it.each(['hex', 'base64', 'base64url'] as const)('is read from %s', (encoding) => {
    for (let count = 0; count < 50; count++) {
      const bytes = randomBytes(32);
      expect(parseKey(bytes.toString(encoding))).toEqual(keyOf(bytes));
    }
  });

  it.each([
    ['too short', randomBytes(31).toString('base64')],
    ['too long', randomBytes(33).toString('base64')],
    ['empty', ''],
    ['a password', 'correct horse battery staple'],
    ['not hex', 'g'.repeat(64)],
    ['unused bits', `${'A'.repeat(42)}B`],
  ])('is invalid if it is %s', (_what, text) => {
    expect(parseKey(text)).toBe(undefined);
  });

  it('has an id that reveals nothing of it', () => {
    expect(key.id).toMatch(/^[\da-f]{12}$/);
    expect(key.bytes.toString('hex')).not.toContain(key.id);
  });
});

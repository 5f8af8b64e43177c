import fc from 'fast-check';
import { expect, it } from 'vitest';
import { anyCuts, cut } from '../../test/helpers/chunks.ts';
import { mentions } from './mentions.ts';

const word = 'input_required';
const pieces = fc.constantFrom(
  word,
  'input_',
  'required',
  'i',
  'd',
  'input_require',
  'nput_required',
  '"',
  'ü',
);

it('finds a word however the message is split, and only where it is', () => {
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 8 }), anyCuts, (parts, cuts) => {
      const text = parts.join('');
      const chunks = cut(Buffer.from(text), cuts).filter(({ length }) => length > 0);
      expect(mentions(chunks, word)).toBe(text.includes(word));
    }),
    { numRuns: 5_000 },
  );
});

it('finds a word of one letter', () => {
  expect(mentions([Buffer.from('ab'), Buffer.from('cd')], 'c')).toBe(true);
  expect(mentions([Buffer.from('ab'), Buffer.from('cd')], 'e')).toBe(false);
});

import { expect, it } from 'vitest';
import { editDistance, NearNames } from './near-names.ts';

const listed = (...names: string[]) => names.map((name) => ({ own: name.split('__').at(-1)!, listed: name }));
const near = (name: string, ...names: string[]) => new NearNames(listed(...names), '__').to(name);

it('counts the edits between two names, up to a limit', () => {
  expect(editDistance('greet', 'greet', 2)).toBe(0);
  expect(editDistance('gret', 'greet', 2)).toBe(1);
  expect(editDistance('graet', 'greet', 2)).toBe(1);
  expect(editDistance('rgeet', 'greet', 2)).toBe(1);
  expect(editDistance('kitten', 'sitting', 3)).toBe(3);
  expect(editDistance('kitten', 'sitting', 2)).toBeUndefined();
  expect(editDistance('', 'abc', 2)).toBeUndefined();
});

it('finds names that differ in one or two characters, and only the nearest', () => {
  expect(near('get-summ', 'get-sum', 'get-sums-of', 'put')).toEqual(['get-sum']);
  expect(near('gret', 'greet', 'forget')).toEqual(['greet']);
  expect(near('raed_flie', 'read_file', 'write_file')).toEqual(['read_file']);
  expect(near('go__gret', 'go__greet', 'slow__greet')).toEqual(['go__greet']);
  expect(near('away__gret', 'go__greet', 'slow__greet')).toEqual(['go__greet', 'slow__greet']);
});

it('prefers names that differ only in case and punctuation, and matches nothing to a short name', () => {
  expect(near('Get_Sum', 'get-sun', 'get-sum')).toEqual(['get-sum']);
  expect(near('add', 'get', 'odd', 'sum')).toEqual(['odd']);
  expect(near('at', 'it', 'a')).toEqual([]);
  expect(near('nothing', 'touch', 'refer')).toEqual([]);
});

it('suggests at most three names, and bounds the comparisons', () => {
  expect(near('tool', 'tool1', 'tool2', 'tool3', 'tool4')).toEqual(['tool1', 'tool2', 'tool3']);
  const many = Array.from({ length: 5_000 }, (_, index) => `tool${index + 10_000}`);
  expect(near('gret', ...many, 'greet')).toEqual(['greet']);
  expect(near('fool99999', ...many, 'fool99998')).toEqual([]);
  expect(near(`${'a'.repeat(64)}b`, 'a'.repeat(64))).toEqual([]);
});

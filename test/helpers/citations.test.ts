import { expect, it } from 'vitest';
import { citationsIn } from './citations.ts';

const cited = (text: string) => citationsIn('some.test.ts', text).map(({ id, line }) => `${id}:${line}`);

it('finds ids in titles of all kinds', () => {
  expect(cited('describe(\'starts [X1]\', () => {\n  it("runs [X2, X3] and [X4]", run);\n});')).toEqual([
    'X1:1',
    'X2:2',
    'X3:2',
    'X4:2',
  ]);
  expect(cited("it.each(['a', 'b'])('takes %s [X1]', run)")).toEqual(['X1:1']);
  expect(cited('test.concurrent(\n  `in a template [X1]`, run)')).toEqual(['X1:1']);
});

it('ignores comments, other strings and skipped tests', () => {
  expect(cited("// it('does [X1]', run)")).toEqual([]);
  expect(cited("const text = 'as in [X1]';")).toEqual([]);
  expect(cited("it.skip('does [X1]', run); it.todo('[X2]');")).toEqual([]);
});

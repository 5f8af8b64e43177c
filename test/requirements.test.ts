import { describe, expect, it } from 'vitest';
import { citationsIn } from './helpers/citations.ts';
import { sourceFiles } from './helpers/source.ts';
import { requirements } from './requirements.ts';

const citations = ['src', 'test']
  .flatMap((folder) => sourceFiles(folder))
  .filter(({ path }) => isInShortSuite(path))
  .flatMap(({ path, text }) => citationsIn(path, text));
// A requirement must be tested by `npm test`, not only by the long runs.
function isInShortSuite(path: string): boolean {
  return path.endsWith('.test.ts') && !path.endsWith('.full.test.ts') && !path.startsWith('test/helpers/');
}

const citedIds = new Set(citations.map(({ id }) => id));

describe('requirements', () => {
  it('number 72', () => {
    expect(Object.keys(requirements)).toHaveLength(72);
  });

  it('are all cited by a test', () => {
    const uncited = Object.entries(requirements).filter(([id]) => !citedIds.has(id));
    expect(uncited.map(([id, text]) => `no test's title cites [${id}]: ${text}`).join('\n')).toBe('');
  });

  it('exist if they are cited', () => {
    const unknown = citations.filter(({ id }) => !Object.hasOwn(requirements, id));
    expect(
      unknown.map(({ id, file, line }) => `${file}:${line} cites ${id}, which does not exist`).join('\n'),
    ).toBe('');
  });
});

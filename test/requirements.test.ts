import { describe, expect, it } from 'vitest';
import { citationsIn } from './helpers/citations.ts';
import { sourceFiles } from './helpers/source.ts';
import { requirements } from './requirements.ts';

const citations = ['src', 'test']
  .flatMap((folder) => sourceFiles(folder))
  .filter(({ path }) => isInShortSuite(path))
  .flatMap(({ path, text }) => citationsIn(path, text));
// A long run that cites an id stands beside a short one that does.
function isInShortSuite(path: string): boolean {
  return path.endsWith('.test.ts') && !path.endsWith('.full.test.ts') && !path.startsWith('test/helpers/');
}

const citedIds = new Set(citations.map(({ id }) => id));
const open = requirements.filter(({ due }) => !due);

describe('requirements', () => {
  it('are 72, each with an id of its own', () => {
    expect(new Set(requirements.map(({ id }) => id)).size).toBe(72);
    expect(requirements).toHaveLength(72);
  });

  it('that are due are all cited by a test', () => {
    const uncited = requirements.filter(({ id, due }) => due && !citedIds.has(id));
    expect(uncited.map(({ id, text }) => `no test's title cites [${id}]: ${text}`).join('\n')).toBe('');
  });

  it('exist where they are cited', () => {
    const known = new Set(requirements.map(({ id }) => id));
    const unknown = citations.filter(({ id }) => !known.has(id));
    expect(
      unknown.map(({ id, file, line }) => `${file}:${line} cites ${id}, which does not exist`).join('\n'),
    ).toBe('');
  });

  it('are marked as due once a test cites them', () => {
    const early = citations.filter(({ id }) => open.some((requirement) => requirement.id === id));
    const advice = ({ id, file, line }: (typeof early)[number]) =>
      `${file}:${line} cites ${id}: mark ${id} as due in test/requirements.ts`;
    expect(early.map(advice).join('\n')).toBe('');
  });

  if (open.length > 0) {
    it(`not yet due: ${open.map(({ id }) => id).join(' ')}`, () => {
      console.info(`${open.length} of ${requirements.length} requirements are not yet due:`);
      for (const { id, text } of open) console.info(`  ${id}  ${text}`);
    });
  }
});

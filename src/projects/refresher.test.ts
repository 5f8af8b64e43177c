import { expect, it } from 'vitest';
import type { ProjectState } from '../store/projects.ts';
import { unstoredProject } from './live-project.ts';
import { Refresher } from './refresher.ts';

function state(id: string, description: string): ProjectState {
  return { ...unstoredProject, project: { ...unstoredProject.project, id, description } };
}

/** Answers reads when the test says so. */
class Source {
  readonly reads: { id: string | undefined; answer(...states: ProjectState[]): void; fail(): void }[] = [];

  all(): Promise<ProjectState[]> {
    return new Promise((resolve, reject) => {
      this.reads.push({
        id: undefined,
        answer: (...all) => resolve(all),
        fail: () => reject(new Error('away')),
      });
    });
  }

  get(id: string): Promise<ProjectState | undefined> {
    return new Promise((resolve, reject) => {
      this.reads.push({ id, answer: (found) => resolve(found), fail: () => reject(new Error('away')) });
    });
  }
}

class Target {
  readonly known = new Map<string, string>();

  list() {
    return [...this.known.keys()].map((id) => ({ id }));
  }

  apply({ project }: ProjectState) {
    this.known.set(project.id, project.description);
  }

  remove(id: string) {
    this.known.delete(id);
  }
}

function refresher() {
  const source = new Source();
  const target = new Target();
  return { source, target, refresher: new Refresher(source, target) };
}

/** What was asked for by then has been begun. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

it('never puts an older state behind a newer one', async () => {
  const { source, target, refresher: made } = refresher();
  const first = made.refresh('a');
  await turn();
  const second = made.refresh('a');
  await turn();
  expect(source.reads).toHaveLength(1);
  source.reads[0]!.answer(state('a', 'older'));
  await first;
  await turn();
  source.reads[1]!.answer(state('a', 'newer'));
  await second;
  expect(target.known).toEqual(new Map([['a', 'newer']]));
});

it('reads once for all who ask while one waits its turn, and again for those who ask later', async () => {
  const { refresher: made } = refresher();
  const begun = made.refresh('a');
  await turn();
  expect(made.refresh('a')).toBe(made.refresh('a'));
  expect(made.refresh('a')).not.toBe(begun);
});

it('takes away what is gone, and brings what is new', async () => {
  const { source, target, refresher: made } = refresher();
  const all = made.refresh();
  await turn();
  source.reads[0]!.answer(state('a', ''), state('b', ''));
  await all;
  const one = made.refresh('a');
  await turn();
  source.reads[1]!.answer();
  await one;
  expect([...target.known.keys()]).toEqual(['b']);
  const again = made.refresh();
  await turn();
  source.reads[2]!.answer(state('c', ''));
  await again;
  expect([...target.known.keys()]).toEqual(['c']);
});

it('goes on after a read that failed', async () => {
  const { source, target, refresher: made } = refresher();
  const failed = made.refresh('a');
  const next = made.refresh('b');
  await turn();
  source.reads[0]!.fail();
  await expect(failed).rejects.toThrow('away');
  await turn();
  source.reads[1]!.answer(state('b', ''));
  await next;
  expect([...target.known.keys()]).toEqual(['b']);
});

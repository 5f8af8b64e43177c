import { expect, it } from 'vitest';
import type { ProjectState } from '../store/projects.ts';
import { unstoredProject } from './live-project.ts';
import { Refresher } from './refresher.ts';

function state(id: string, description: string): ProjectState {
  return { ...unstoredProject, project: { ...unstoredProject.project, id, description } };
}

/** Answers reads on demand. */
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

/** Lets pending reads begin. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

it('never replaces a newer state with an older one', async () => {
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

it('reads once for all requests while a read is queued, and again for later ones', async () => {
  const { refresher: made } = refresher();
  const begun = made.refresh('a');
  await turn();
  expect(made.refresh('a')).toBe(made.refresh('a'));
  expect(made.refresh('a')).not.toBe(begun);
});

it('removes what is gone and adds what is new', async () => {
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

it('continues after a failed read', async () => {
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

import { expect, it } from 'vitest';
import { newKey } from '../identity/keys.ts';
import { type CountedDenial, DenialQueue, type NewDenial } from './denial-queue.ts';
import { Denials } from './denials.ts';

const ci = { kind: 'key', id: 'id of ci', name: 'ci', address: '192.0.2.1' } as const;

function denial(more: Partial<NewDenial> = {}): NewDenial {
  const project = { id: 'id of web', name: 'web' };
  return { actor: ci, outcome: 'denied', action: 'call', project, subject: 'it', ruleId: undefined, ...more };
}

/** Denials, and what was written; `fails` once for each true. */
function started(...fails: boolean[]) {
  const written: CountedDenial[] = [];
  const denials = new Denials(async (batch) => {
    if (fails.shift()) throw new Error('away');
    written.push(...batch);
  });
  return { denials, written };
}

const total = (entries: readonly CountedDenial[]) => entries.reduce((sum, { count }) => sum + count, 0);

it('are counted if they are equal', async () => {
  const { denials, written } = started();
  for (let index = 0; index < 3; index++) denials.add(denial());
  denials.add(denial({ ruleId: 'r1' }));
  expect(denials.queued).toBe(2);
  await denials.close();
  expect(written.map(({ count, ruleId }) => [count, ruleId])).toEqual([
    [3, undefined],
    [1, 'r1'],
  ]);
  expect(denials.merged).toBe(0);
});

it('cannot hide another action of their sender', async () => {
  const { denials, written } = started();
  for (let index = 0; index < 1_000; index++) denials.add(denial({ subject: `resource ${index}` }));
  denials.add(denial({ action: 'manage', subject: 'key evil' }));
  await denials.close();
  expect(written.find(({ action }) => action === 'manage')).toMatchObject({ subject: 'key evil', count: 1 });
  const more = written.find(({ subject }) => subject === 'and more');
  expect(more).toMatchObject({ actor: ci, action: 'call', ruleId: undefined, count: 950 });
  expect(denials.merged).toBe(950);
  expect(total(written)).toBe(1_001);
});

it('of many actors, addresses and subjects hide no action of anybody', async () => {
  const { denials, written } = started();
  for (let index = 0; index < 5_000; index++) {
    const actor = { ...ci, id: `id ${index % 40}`, address: `192.0.2.${index % 7}` };
    denials.add(denial({ actor, subject: `resource ${index}` }));
  }
  const victim = { ...ci, id: 'id of a victim' };
  denials.add(denial({ actor: victim, action: 'manage', subject: 'key evil' }));
  await denials.close();
  expect(written.find(({ actor }) => actor === victim)).toMatchObject({ subject: 'key evil' });
  expect(new Set(written.map(({ actor }) => actor.id)).size).toBe(41);
  expect(written.length).toBeLessThanOrEqual(1_000 + 41 * 6);
  expect(total(written)).toBe(5_001);
});

it('of those whom nobody knows are bounded, from however many addresses', async () => {
  const { denials, written } = started();
  for (let index = 0; index < 5_000; index++) {
    const actor = { ...ci, id: '', name: 'unknown', address: `2001:db8::${index}` };
    denials.add(
      denial({ actor, outcome: 'refused', action: 'authenticate', subject: 'credential: unknown' }),
    );
  }
  await denials.close();
  expect(written).toHaveLength(101);
  expect(written.at(-1)).toMatchObject({ subject: 'and more', count: 4_900, actor: { address: undefined } });
});

it('are neither lost nor counted twice if they cannot be written at once', () => {
  const [earlier, later] = [new DenialQueue(), new DenialQueue()];
  for (let index = 0; index < 60; index++) earlier.add(denial({ subject: `earlier ${index}` }));
  for (let index = 0; index < 60; index++) later.add(denial({ subject: `later ${index}` }));
  later.add(denial({ subject: 'earlier 0' }));
  expect(earlier.addAll(later)).toBe(50);
  expect(total(earlier.entries())).toBe(121);
  expect(earlier.entries().find(({ subject }) => subject === 'and more')).toMatchObject({ count: 71 });
});

it('do not contain whole keys, nor credentials of URIs', async () => {
  const { denials, written } = started();
  const { id, text } = newKey();
  denials.add(denial({ subject: `key ${text}` }));
  denials.add(denial({ subject: 'resource file:///x?token=SECRET1&q=1 of github' }));
  denials.add(denial({ subject: `resource https://user:SECRET2@example.com/${text} of github` }));
  await denials.close();
  expect(written.map(({ subject }) => subject)).toEqual([
    `key sbk_${id}…`,
    'resource file:///x?token=***&q=1 of github',
    `resource https://user:***@example.com/sbk_${id}… of github`,
  ]);
});

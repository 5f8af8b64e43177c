import { describe, expect, it } from 'vitest';
import { RuleSet } from './rule-set.ts';
import type { Item, ItemKind, Rule } from './rules.ts';

const COUNT = 500;
const servers = ['files', 'files'];

function denials(kind: ItemKind, name: (number: number) => string, server = '*'): Rule[] {
  const any = { project: undefined, readOnly: undefined, destructive: undefined };
  const subject = { kind: 'everyone' } as const;
  return Array.from({ length: COUNT }, (_, number) => ({
    ...{ id: `r${number}`, effect: 'deny', subject, kind, server, name: name(number), ...any },
  }));
}
const resource = (name: string): Item => ({ kind: 'resource', servers, name, hints: [] });
const misread = '%252541/../x?a+b#c\\d';

/** CPU time of this thread, which other programs do not lengthen. The least of some, because other garbage may. */
function msOf(work: () => unknown, times = 5): number {
  const each = Array.from({ length: times }, () => {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...each);
}

describe('a decision', () => {
  it.each<[string, (number: number) => string]>([
    ['that repeats', (number) => `*${'ab'.repeat(240)}${number}*`],
    ['that nearly fits everywhere', (number) => `*${'a'.repeat(4 + (number % 3))}b${number % 10}*`],
    ['with many parts', (number) => `*a*a*a*a*a*a*a*a*ab${number}*`],
    ['with escapes', (number) => `*%2525${number}/*`],
  ])(`with ${COUNT} rules, each with a pattern %s, is quick for any URI`, (_what, name) => {
    const set = new RuleSet(denials('resource', name));
    set.decider(resource('file:///a'));
    for (const text of [
      'a'.repeat(15_000),
      'a'.repeat(2_000),
      'ab'.repeat(300),
      '%41a'.repeat(400),
      'a/'.repeat(900),
    ])
      for (const uri of [`file:///${text}${misread}`, `file:///${text}`, `file:///${text}é 0123456789`])
        expect(msOf(() => set.decider(resource(uri)))).toBeLessThan(20);
  });

  it('denies what takes too long to read or to compare, and only if a rule denies something of its kind and server', () => {
    const set = new RuleSet(denials('resource', (number) => `*none${number}*`));
    const effect = (item: Item) => set.decider(item)?.effect;
    expect(effect(resource(`file:///${'a'.repeat(2_000)}`))).toBeUndefined();
    expect(effect(resource(`file:///${'a'.repeat(2_100)}`))).toBe('deny');
    expect(effect(resource(`file:///${'a'.repeat(200)}${misread}`))).toBeUndefined();
    expect(effect(resource(`file:///${'a'.repeat(1_900)}${misread}`))).toBe('deny');
    expect(effect({ ...resource('a'.repeat(2_100)), kind: 'tool' })).toBeUndefined();
    const other = new RuleSet(denials('resource', () => '*', 'github'));
    expect(other.decider(resource(`file:///${'a'.repeat(2_100)}`))).toBeUndefined();
    const few = new RuleSet(denials('resource', (number) => `*none${number}*`).slice(0, 9));
    expect(few.decider(resource(`file:///${'a'.repeat(600)}${misread}`))).toBeUndefined();
  });
});

describe('a list', () => {
  const build = (set: RuleSet, kind: ItemKind, name: (number: number) => string) => () => {
    for (let number = 0; number < 5_000; number++)
      set.denies({ kind, servers, name: name(number), hints: [], isListed: true });
  };

  it(`of 5,000 items with ${COUNT} rules is built quickly, and again at once`, () => {
    for (const name of ['t*o*o*l*_*', 'tool_', '*tool_']) {
      const rules = denials('tool', (number) => `${name}${number}x*`);
      const tools = (number: number) => `tool_${number}`;
      expect(msOf(() => build(new RuleSet(rules), 'tool', tools)(), 3)).toBeLessThan(100);
      const set = new RuleSet(rules);
      build(set, 'tool', tools)();
      expect(msOf(build(set, 'tool', tools))).toBeLessThan(20);
    }
  });

  it('asks only the rules of its kind and its servers', () => {
    const rules = [...denials('tool', () => '*x*', 'github'), ...denials('resource', () => '*x*')];
    const set = new RuleSet(rules);
    expect(msOf(build(set, 'tool', (number) => `x${number}`))).toBeLessThan(20);
    expect(set.denies({ ...resource('x'), isListed: true })).toBe(true);
  });
});

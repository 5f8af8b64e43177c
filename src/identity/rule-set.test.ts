import { describe, expect, it } from 'vitest';
import { RuleSet } from './rule-set.ts';
import type { Hints, Item, Rule } from './rules.ts';

let count = 0;

function rule(effect: Rule['effect'], name: string, more: Partial<Rule> = {}): Rule {
  const any = {
    project: undefined,
    kind: undefined,
    server: '*',
    readOnly: undefined,
    destructive: undefined,
  };
  return { id: `r${++count}`, effect, subject: { kind: 'everyone' }, ...any, name, ...more };
}
const deny = (name: string, more: Partial<Rule> = {}) => rule('deny', name, more);
const allow = (name: string, more: Partial<Rule> = {}) => rule('allow', name, more);

function tool(name: string, hints: Hints[] = [], servers = ['github', 'github']): Item {
  return { kind: 'tool', servers, name, hints };
}
function resource(name: string): Item {
  return { kind: 'resource', servers: ['files', 'files'], name, hints: [] };
}

/** The effect of the rule that decides. */
function effect(item: Item, ...rules: Rule[]): Rule['effect'] | undefined {
  return new RuleSet(rules).decider(item)?.effect;
}

describe('rules', () => {
  it('decide nothing where none matches', () => {
    expect(effect(tool('list'))).toBeUndefined();
    expect(effect(tool('list'), deny('delete_*'), deny('*', { kind: 'prompt' }))).toBeUndefined();
  });

  it('are all given by the most specific one, in whatever order they come', () => {
    const rules = [deny('*'), allow('list_*'), deny('list_keys'), allow('*', { server: 'git*' })];
    for (const ordered of [rules, rules.toReversed()]) {
      expect(effect(tool('list_repos'), ...ordered)).toBe('allow');
      expect(effect(tool('list_keys'), ...ordered)).toBe('deny');
      expect(effect(tool('create'), ...ordered)).toBe('allow');
      expect(effect(tool('create', [], ['files', 'files']), ...ordered)).toBe('deny');
    }
  });

  it.each(['DELETE_REPO', 'Delete_Repo', 'delete_REPO', 'ＤＥＬＥＴＥ_repo'])(
    'deny %s in any case',
    (name) => {
      expect(effect(tool(name), deny('delete_*'))).toBe('deny');
      expect(effect(tool(name), deny('*_Repo', { server: 'GITHUB' }))).toBe('deny');
      expect(effect(tool(name), deny('*'), allow('delete_repo'))).toBe('deny');
    },
  );

  it('deny names that differ in other letters than latin ones', () => {
    expect(effect(tool('ΟΔΟΣΑ'), deny('ΟΔΟΣ*'))).toBe('deny');
    expect(effect(tool('ſecret'), deny('secret*'))).toBe('deny');
    expect(effect(tool('cafe\u0301'), deny('caf\u00e9*'))).toBe('deny');
  });

  it('deny a group for one server in it, and allow it for all of them', () => {
    const pool = tool('list', [], ['pool', 'github', 'gitlab']);
    expect(effect(pool, deny('*', { server: 'gitlab' }))).toBe('deny');
    expect(effect(pool, deny('*', { server: 'pool' }))).toBe('deny');
    expect(effect(pool, deny('*'), allow('*', { server: 'github' }))).toBe('deny');
    expect(effect(pool, deny('*'), allow('*', { server: 'git*' }))).toBe('allow');
    expect(effect(pool, deny('*'), allow('*', { server: 'pool' }))).toBe('allow');
    expect(effect(pool, deny('*'), allow('*', { server: 'POOL' }))).toBe('deny');
  });
});

describe('hints of tools', () => {
  const readers: Hints = { readOnlyHint: true };
  it.each<[string, Hints[], boolean, boolean]>([
    ['that gives none', [], false, true],
    ['with empty annotations', [{}], false, true],
    ['that only reads', [readers], true, false],
    ['that adds', [{ destructiveHint: false }], false, false],
    ['that reads and destroys', [{ readOnlyHint: true, destructiveHint: true }], true, true],
    ['with text for a hint', [{ readOnlyHint: 'true', destructiveHint: 'false' }], false, true],
    ['with a number for a hint', [{ readOnlyHint: 1, destructiveHint: 0 }], false, true],
  ])('of one %s', (_what, hints, readOnly, destructive) => {
    for (const value of [true, false]) {
      expect(effect(tool('x', hints), deny('*', { readOnly: value }))).toBe(
        value === readOnly ? 'deny' : undefined,
      );
      expect(effect(tool('x', hints), allow('*', { destructive: value }))).toBe(
        value === destructive ? 'allow' : undefined,
      );
    }
  });

  it('deny if one server of a group gives them, and allow if all do', () => {
    const mixed = tool('x', [readers, {}]);
    expect(effect(mixed, deny('*', { destructive: true }))).toBe('deny');
    expect(effect(mixed, deny('*'), allow('*', { readOnly: true }))).toBe('deny');
    expect(effect(tool('x', [readers, readers]), deny('*'), allow('*', { readOnly: true }))).toBe('allow');
  });

  it('of prompts and resources say that these only read', () => {
    for (const item of [resource('file:///a'), { ...tool('review'), kind: 'prompt' as const }]) {
      expect(effect(item, deny('*', { readOnly: false }))).toBeUndefined();
      expect(effect(item, deny('*', { destructive: true }))).toBeUndefined();
      expect(effect(item, deny('*'), allow('*', { readOnly: true }))).toBe('allow');
    }
  });
});

describe('a denial of resources', () => {
  it.each([
    ['file:///secret/*', 'file:///secre%74%2f%ff%2f..%2fkey'],
    ['file:///secret', 'file:///x%2fy/../secre%74'],
    ['notes://secret/*', 'notes://pub/../secret/x'],
    ['notes:secret/*', 'notes:pub/../secret/x'],
    ['secret/*', 'pub/../secret/x'],
    ['notes:my%20docs/*', 'notes:my docs/x'],
    ['http://h:80/*', 'http://h/x'],
    ['http://h/*', 'http://h:80/x'],
    ['postgres://u:p@h/db/*', 'postgres://h/db/x'],
    ['https://h/a*', 'https://x@h/a'],
    ['file:///etc/*', 'file://any/etc/passwd'],
    ['file:///etc/passwd', 'file:///etc/passwd?x'],
    ['file:///etc/passwd', 'file:///etc/passwd#x'],
    ['notes://a b', 'notes://a b#x'],
    ['db://t?n=my%20table', 'db://t?n=my+table'],
    ['file:///secret/*', 'file:///secret'],
    ['file:///secret/', 'file:///secret'],
    ['file:///secret', 'file:///secret/'],
    ['https://h.com/*', 'https://h.com./x'],
    ['file:///secret/*', 'file:///secret./x'],
    ['file:///secret/*', 'file:\\\\\\secret\\x'],
    ['file:///secret/*', 'FILE:///SECRET/x'],
    ['file:///secret', 'file:///secre%2525252574'],
  ])('of %s is one of %s', (pattern, uri) => {
    expect(effect(resource(uri), deny(pattern))).toBe('deny');
  });

  it('leaves others alone', () => {
    const rules = [deny('file:///secret/*'), deny('db://t?name=secret'), deny('file://h/share/*')];
    for (const uri of [
      'file:///secrets',
      'file:///docs/secret/a b',
      'db://t',
      'db://t?name=a',
      'file:///a',
      'notes:x',
    ])
      expect([uri, effect(resource(uri), ...rules)]).toEqual([uri, undefined]);
  });

  it('is one of every URI that nobody can read', () => {
    let nested = '%41';
    for (let turn = 0; turn < 60; turn++) nested = nested.replace('%', '%25');
    expect(effect(resource(`file:///${nested}`), deny('file:///secret'))).toBe('deny');
    expect(effect(resource(`file:///${nested}`), deny('*'), allow('file:///*'))).toBe('deny');
    expect(effect(resource(`file:///${nested}`), deny('delete_*', { kind: 'tool' }))).toBeUndefined();
  });
});

describe('a permission of resources', () => {
  it.each([
    ['https://example.com', 'https://example.com'],
    ['https://example.com/*', 'https://example.com/'],
    ['https://example.com/*', 'https://example.com/a?b=c#d'],
    ['file:///docs/', 'file:///docs/'],
    ['file:///my%20docs/*', 'file:///my%20docs/a'],
    ['file:///é/*', 'file:///é/a'],
    ['postgres://u:p@h/db/*', 'postgres://u:p@h/db/x'],
    ['doc://a#*', 'doc://a#x'],
    ['db://t?*', 'db://t?q=a+b'],
    ['HTTP://H/*', 'HTTP://H/x'],
    ['file://host/*', 'file://host/x'],
    ['resource://inner/file:///pub/*', 'resource://inner/file:///pub/a'],
    ['*.md', 'file:///a b/c.md'],
  ])('of %s covers %s', (pattern, uri) => {
    expect(effect(resource(uri), deny('*'), allow(pattern))).toBe('allow');
  });

  it.each([
    ['file:///pub/*', 'file:///pub/../secret'],
    ['file:///pub/*', 'file:///pub/%2e%2e/secret'],
    ['file:///pub/*', 'file:///pub/..%2fsecret'],
    ['file:///pub/*', 'file:///pub/x%2f..%5c..%5csecret'],
    ['file:///pub/*', 'file:///pub\\..\\secret'],
    ['file:///pub/*', 'FILE:///pub/a'],
    ['file:///pub/*', 'file:///Pub/a'],
    ['file:///pub/*', 'file:///%70ub/a'],
    ['file:///pub/*', 'file:///pub'],
    ['notes://pub/*', 'notes://pub/../secret/x'],
    ['*.md', 'file:///secret/key?x.md'],
    ['*.md', 'file:///secret/key#x.md'],
    ['file:///pub/*', 'file:///pub/#/../../secret'],
    ['https://h/*', 'https://h@other/'],
  ])('of %s does not cover %s', (pattern, uri) => {
    expect(effect(resource(uri), deny('*'), allow(pattern))).toBe('deny');
  });
});

describe('a completion for a template', () => {
  const asked = (template: string, value?: string): Item => ({
    ...resource(template),
    revealsAll: true,
    ...(value === undefined ? {} : { input: JSON.stringify({ argument: { name: 'x', value } }) }),
  });

  it.each([
    ['file:///secret/*', 'file:///secret/{x}', ''],
    ['file:///secret/*', 'file:///{x}', 'pub'],
    ['file:///secret/*', 'file:///{x}/a', 'pub'],
    ['file:///SECRET/*', 'file:///secret/{x}', ''],
    ['file:///secret/*', 'file:///%73ecret/{x}', ''],
    ['file:///secret/*', 'file:///pub/../{x}', 'a'],
    ['file:///secret/*', 'file:///pub/{x}', '../secret/'],
    ['file:///secret/*', 'file:///pub/{x}', '%2e%2e'],
    ['file:///secret/*', 'file:///pub/{x}', '..\\secret'],
    ['file:///secret/*', 'file:///pub/{x}', '/secret'],
    ['file:///secret/*', 'file:///pub/{x}', undefined],
    ['file:///secret/*', 'file:///pub/.{x}', './secret'],
    ['https://secret/*', 'https://pub{x}', '@secret/'],
    ['*secret*', 'notes://pub/{x}', 'a'],
    ['http://h:80/*', 'http://h/{x}', 'a'],
    ['file:///*', '{x}', 'a'],
  ])('is denied with %s: %s with %s', (pattern, template, value) => {
    expect(effect(asked(template, value), deny(pattern))).toBe('deny');
  });

  it.each([
    ['file:///secret/*', 'file:///pub/{x}', 'a/b.c'],
    ['file:///secret/*', 'notes://pub/{x}', 'a'],
    ['notes://secret/*', 'notes://pub/{x}/{y}', ''],
    ['delete_*', 'file:///{x}', '../'],
  ])('is not denied with %s: %s with %s', (pattern, template, value) => {
    expect(effect(asked(template, value), deny(pattern))).toBeUndefined();
  });

  it('is allowed only by what covers all of it', () => {
    const allowed = (template: string, value: string | undefined, ...rules: Rule[]) =>
      effect(asked(template, value), deny('*'), ...rules) === 'allow';
    expect(allowed('file:///pub/{x}', 'a', allow('file:///pub/*'))).toBe(true);
    expect(allowed('file:///pub/{x}', 'a', allow('file:///*'))).toBe(true);
    expect(allowed('file:///pub/{x}', '../', allow('file:*'))).toBe(true);
    expect(allowed('file:///pub/{x}', '../', allow('**', { server: 'files' }))).toBe(true);
    expect(allowed('file:///pub/{x}', undefined, allow('file:///pub/*'))).toBe(false);
    expect(allowed('file:///pub/{x}', '../', allow('file:///pub/*'))).toBe(false);
    expect(allowed('file:///pub/../{x}', 'a', allow('file:///pub/*'))).toBe(false);
    expect(allowed('file:///PUB/{x}', 'a', allow('file:///pub/*'))).toBe(false);
    expect(allowed('file:///{x}', 'a', allow('file:///pub/*'))).toBe(false);
    expect(allowed('file:///{x}', 'a', allow('file:///*a'))).toBe(false);
    expect(allowed('file:///{x}', 'a', allow('file:///{x}'))).toBe(false);
    expect(allowed('file:///{x}', 'a', allow('file:///{x}*'))).toBe(false);
    expect(allowed('file:///{x}', 'a', allow(''))).toBe(false);
    expect(allowed('file:///{x}', 'a', allow('file:///*', { readOnly: false }))).toBe(false);
    expect(allowed('file:///{x}', 'a', allow('file:///*', { kind: 'tool' }))).toBe(false);
    expect(allowed('file:///{x}', 'a', allow('file:///*', { server: 'FILES' }))).toBe(false);
  });
});

describe('a server', () => {
  const shown = (...rules: Rule[]) => new RuleSet(rules).showsServer(['github', 'github']);
  const kinds = ['tool', 'prompt', 'resource'] as const;

  it('is hidden with everything in it', () => {
    expect(shown(deny('*', { server: 'GitHub' }))).toBe(false);
    expect(shown(deny('**'))).toBe(false);
    expect(shown(...kinds.map((kind) => deny('*', { kind })))).toBe(false);
    expect(shown(deny('*', { kind: 'tool' }), deny('*', { readOnly: true }))).toBe(false);
    expect(shown(allow('*'), deny('*'))).toBe(false);
    const me = { kind: 'principal', id: 'me' } as const;
    expect(shown(deny('*', { subject: me }), allow('list'))).toBe(false);
  });

  it('is shown if something in it may be visible', () => {
    expect(shown(deny('delete_*'))).toBe(true);
    expect(shown(deny('*', { server: 'files' }))).toBe(true);
    expect(shown(deny('*', { kind: 'tool' }))).toBe(true);
    expect(shown(deny('*', { destructive: true }))).toBe(true);
    expect(shown(deny('*'), allow('list_*'))).toBe(true);
    expect(shown(deny('*'), allow('*', { server: 'git*' }))).toBe(true);
  });

  it('is not shown for a permission that is for others', () => {
    expect(shown(deny('*'), allow('list_*', { server: 'GitHub' }))).toBe(false);
    expect(shown(deny('*'), allow('list_*', { server: 'files' }))).toBe(false);
    expect(shown(deny('*'), allow('x', { kind: 'prompt', readOnly: false }))).toBe(false);
  });
});

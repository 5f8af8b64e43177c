import { describe, expect, it } from 'vitest';
import { bySpecificity, type Rule, ruleText } from './rules.ts';

const everyone = { kind: 'everyone' } as const;

function rule(given: Partial<Rule>): Rule {
  const any = { project: undefined, kind: undefined, server: '*', name: '*' };
  return {
    id: 'r1',
    effect: 'deny',
    subject: everyone,
    ...any,
    readOnly: undefined,
    destructive: undefined,
    ...given,
  };
}

describe('the most specific rule', () => {
  const person = rule({ subject: { kind: 'principal', id: '7' } });
  const ofGroup = rule({ subject: { kind: 'group', id: '3' } });
  const ofRole = rule({ subject: { kind: 'role', role: 'caller' } });
  const named = rule({ name: 'delete_repo' });
  const longer = rule({ name: 'delete_*' });
  const shorter = rule({ name: '*repo' });
  const server = rule({ server: 'github' });
  const someServers = rule({ server: 'git*' });
  const twoHints = rule({ readOnly: false, destructive: true });
  const oneHint = rule({ destructive: true });
  const kind = rule({ kind: 'tool' });
  const project = rule({ project: 'p' });
  const order = [
    ...[person, ofGroup, ofRole, named, longer, shorter, server, someServers],
    ...[twoHints, oneHint, kind, project, rule({})],
  ];

  it('is told by who, then the name, the server, the hints, the kind, and the project', () => {
    expect(order.toReversed().toSorted(bySpecificity)).toEqual(order);
  });

  it('is decided by the first of these, whatever follows', () => {
    const precise = rule({ ...named, server: 'github', kind: 'tool', project: 'p', readOnly: true });
    expect([precise, ofRole].toSorted(bySpecificity)).toEqual([ofRole, precise]);
    const exactServer = rule({ name: 'a*', server: 'github', kind: 'tool', project: 'p' });
    expect([exactServer, longer].toSorted(bySpecificity)).toEqual([longer, exactServer]);
  });

  it('counts all characters but stars', () => {
    expect(
      [rule({ name: 'a*b' }), rule({ name: '*a**' })].toReversed().toSorted(bySpecificity)[0]!.name,
    ).toBe('a*b');
    // A pattern is less specific than any name.
    expect([rule({ name: 'delete_everything*' }), rule({ name: 'a' })].toSorted(bySpecificity)[0]!.name).toBe(
      'a',
    );
  });

  it('is a denial, if two are equal', () => {
    const allow = rule({ ...longer, effect: 'allow', id: 'r2' });
    for (const rules of [
      [allow, longer],
      [longer, allow],
    ])
      expect(rules.toSorted(bySpecificity)).toEqual([longer, allow]);
    // As specific as each other, though about different things.
    const readers = rule({ readOnly: true, effect: 'allow' });
    expect([readers, oneHint].toSorted(bySpecificity)).toEqual([oneHint, readers]);
  });
});

describe('a rule', () => {
  it.each([
    [rule({}), 'deny everyone anything */*'],
    [
      rule({ subject: { kind: 'role', role: 'caller' }, kind: 'tool', server: 'github', name: 'delete_*' }),
      'deny role caller tool github/delete_*',
    ],
    [
      rule({ effect: 'allow', subject: { kind: 'group', id: '3' }, readOnly: true, destructive: false }),
      'allow group 3 anything */* read-only not destructive',
    ],
    [
      rule({ subject: { kind: 'principal', id: '7' }, readOnly: false, destructive: true }),
      'deny principal 7 anything */* not read-only destructive',
    ],
  ])('is shown as a person would say it', (given, text) => {
    expect(ruleText(given)).toBe(text);
  });
});

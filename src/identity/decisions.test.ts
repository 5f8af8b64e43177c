import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { verdict } from '../../test/helpers/access-model.ts';
import { hiddenItems, isHidden, itemOf } from '../gateway/items.ts';
import type { Group } from '../upstreams/group.ts';
import { keyOf, offerKinds } from '../upstreams/lists.ts';
import type { Permissions } from './permissions.ts';
import { Policy } from './policy.ts';
import { type Role, roles } from './roles.ts';
import { RuleSet } from './rule-set.ts';
import { type Hints, type Item, type ItemKind, itemKinds, type Rule, type Subject } from './rules.ts';
import type { Grant, RoleFacts } from './shared-permissions.ts';

import { looseSpellings } from './spellings.ts';

/** Change it to try other cases; failures print it. */
const SEED = 20_260_101;
const CASES = 100_000;

const ME = 'me';
const PROJECT = 'p';
const few = <T>(...values: T[]) => fc.constantFrom(...values);

const serverNames = few('github', 'GitHub', 'files', 'git');
const names: Record<ItemKind, fc.Arbitrary<string>> = {
  tool: few('list', 'list_repos', 'delete_repo', 'Delete_Repo', 'delete_'),
  prompt: few('list', 'review', 'delete_repo'),
  resource: few(
    ...['file:///pub', 'file:///pub/a', 'file:///pub/b/c', 'file:///secret/a', 'file:///Secret/a'],
    ...['notes://pub/a', 'notes://secret/a', 'https://h.example/a.txt'],
  ),
};
const namePatterns = fc.oneof(
  few('*', '*e*', '**'),
  few('list', 'list*', 'delete_*', '*_repo', 'Delete_*', 'delete_repo', 'd*_r*o', 'review', '*_*'),
  few(
    ...[
      'file:///*',
      'file:///pub/*',
      'file:///secret/*',
      'file:///secret/a',
      'file:///pub/a',
      '*/a',
      '*://*/a',
    ],
    ...['notes://*', 'notes://secret/*', 'https://*', '*secret*', 'FILE:///PUB/*', 'file:///pub'],
  ),
);
const serverPatterns = fc.oneof(
  fc.constant('*'),
  few('github', 'GitHub', 'git*', '*hub', 'files', 'GIT*', 'pool', 'f*s', '*i*'),
);
const hint = few<unknown>(true, false, undefined, 'true');
const hints: fc.Arbitrary<Hints> = fc.record({ readOnlyHint: hint, destructiveHint: hint });
const someRole = few<Role>(...roles);

const subjects: fc.Arbitrary<Subject> = fc.oneof(
  { arbitrary: fc.constant<Subject>({ kind: 'everyone' }), weight: 3 },
  someRole.map((role): Subject => ({ kind: 'role', role })),
  few('g1', 'g2', 'g3').map((id): Subject => ({ kind: 'group', id })),
  few(ME, ME, 'other').map((id): Subject => ({ kind: 'principal', id })),
);
/** Generators take longer to make than to use. */
function once<Key, Made>(make: (key: Key) => Made): (key: Key) => Made {
  const made = new Map<string, Made>();
  return (key) => {
    const text = JSON.stringify(key);
    if (!made.has(text)) made.set(text, make(key));
    return made.get(text)!;
  };
}

/** Patterns that fit a text, or nearly. */
const patternsNear = once((text: string): fc.Arbitrary<string> => {
  const patterns = [...text].flatMap((_, at) => {
    const [start, end] = [text.slice(0, at), text.slice(at)];
    return ['*', '*', text, `${start}*`, `*${end}`, `${start}*${end}`, text.toUpperCase(), `${start}*x`];
  });
  return few(...patterns);
});

/** Rules, most of which are about the item. */
function rulesNear({ kind, servers, name }: Item): fc.Arbitrary<Rule[]> {
  return rulesAbout({ kind, servers, name });
}

const rulesAbout = once(({ kind, servers, name }: Pick<Item, 'kind' | 'servers' | 'name'>) => {
  const often = <T>(likely: fc.Arbitrary<T>, any: fc.Arbitrary<T>) =>
    fc.oneof({ arbitrary: likely, weight: 4 }, any);
  return fc
    .array(
      fc.record({
        effect: few<Rule['effect']>('allow', 'deny'),
        project: few(undefined, undefined, PROJECT, PROJECT, 'q'),
        subject: subjects,
        kind: often(few(undefined, kind), few(...itemKinds)),
        server: often(few(...servers).chain(patternsNear), serverPatterns),
        name: often(patternsNear(name), namePatterns),
        readOnly: often(fc.constant(undefined), few(true, false)),
        destructive: often(fc.constant(undefined), few(true, false)),
      }),
      { minLength: 2, maxLength: 8, size: 'max' },
    )
    .map((list): Rule[] => list.map((rule, index) => ({ id: `r${index}`, ...rule })));
});

const grants: fc.Arbitrary<Grant[]> = fc.array(
  fc.record({
    holder: few<Grant['holder']>(
      { kind: 'principal', id: ME },
      { kind: 'group', id: 'g1' },
      { kind: 'group', id: 'g2' },
    ),
    project: few(undefined, PROJECT, PROJECT, 'q'),
    role: someRole,
  }),
  { minLength: 1, maxLength: 3 },
);
const members = fc
  .subarray(['g1', 'g2', 'g3'])
  .map((groups) => groups.map((group) => ({ group, principal: ME })));
const servers = fc.oneof(
  serverNames.map((name) => [name, name]),
  fc.uniqueArray(serverNames, { minLength: 1, maxLength: 3 }).map((list) => ['pool', ...list]),
);
const resources = fc.record({
  kind: fc.constant<ItemKind>('resource'),
  servers,
  name: names.resource,
  hints: fc.constant([]),
});
const items: fc.Arbitrary<Item> = few<ItemKind>('tool', 'tool', 'prompt', 'resource', 'resource').chain(
  (kind) =>
    fc.record({
      kind: fc.constant(kind),
      servers,
      name: names[kind],
      hints: kind === 'tool' ? fc.array(hints, { maxLength: 3 }) : fc.constant([]),
    }),
);

/** Other ways to write a URI that some server understands in the same way. */
function misspellings(uri: string): fc.Arbitrary<string> {
  const change = fc.record({ how: fc.integer({ min: 0, max: changes.length - 1 }), at: fc.nat(40) });
  return fc
    .array(change, { maxLength: 4 })
    .map((list) => list.reduce((text, { how, at }) => changes[how]!(text, at), uri));
}

/** Each changes a URI behind its scheme, at some position. */
const changes: ((uri: string, at: number) => string)[] = [
  (uri, at) => edit(uri, at, /[^%/]/g, (found) => `%${found.codePointAt(0)!.toString(16).padStart(2, '0')}`),
  (uri, at) => edit(uri, at, /\/(?=[^/])/g, () => '%2F'),
  (uri, at) => edit(uri, at, /%/g, () => '%25'),
  (uri, at) => edit(uri, at, /(?<=[^/\\])\/(?=[^/\\])/g, () => '//'),
  (uri, at) => edit(uri, at, /(?<=[^/\\])\/(?=[^/\\])/g, () => '/./'),
  (uri, at) => edit(uri, at, /(?<=[^/\\])\/(?=[^/\\])/g, () => '/x/../'),
  (uri, at) => edit(uri, at, /(?<=[^/\\])\/(?=[^/\\])/g, () => '/%ff%2f../'),
  (uri, at) => edit(uri, at, /\//g, () => '\\'),
  (uri, at) => edit(uri, at, /[a-z]/g, (letter) => letter.toUpperCase()),
  (uri) => uri.replace(/^(https:\/\/[\w.]*)\//, '$1:443/'),
  (uri) => uri.replace(/^(https?:\/\/)(?=h)/, '$1user@'),
  (uri) => uri.replace(/^file:\/\/\//, 'file:/'),
  (uri) => uri.replace(/^file:\/\/\//, 'file://localhost/'),
  (uri) => `${uri}/`,
  (uri) => `${uri}?x`,
  (uri) => `${uri}#x`,
];

function edit(uri: string, at: number, where: RegExp, how: (found: string) => string): string {
  const scheme = /^[a-z]+:/i.exec(uri)?.[0] ?? '';
  const rest = uri.slice(scheme.length);
  const places = [...rest.matchAll(where)];
  const place = places[at % Math.max(places.length, 1)];
  if (place === undefined) return uri;
  const { index, 0: found } = place;
  return scheme + rest.slice(0, index) + how(found) + rest.slice(index + found.length);
}

const templates: fc.Arbitrary<Item> = few(
  ...['file:///pub/{one}', 'file:///{one}/a', 'file:///pub/{one}/{other}', 'file:///pub/{one}.txt'],
  ...[
    'notes://pub/{one}',
    'notes://{one}/a',
    'notes://pu{one}',
    'https://h.example/{one}?x={other}',
    '{one}',
  ],
  ...['https://h{one}.example/a', 'file:///pub/.{one}/secret/a', 'file:///pub/b/{one}/../{other}'],
).map((name) => ({ kind: 'resource', servers: ['files', 'files'], name, hints: [] }));
const values = fc
  .array(few('a', 'pub', 'secret', '/', '/', '.', '..', '%2e', '%2f', '\\', '@', '?', '#', 'file:///', ''), {
    maxLength: 5,
  })
  .map((parts) => parts.join(''));

/** A group as far as lists and calls look at it. */
const offeringGroups: fc.Arbitrary<Group> = fc
  .uniqueArray(serverNames, { minLength: 1, maxLength: 3 })
  .chain((list) =>
    fc.tuple(
      ...list.map((name) =>
        fc.record({
          name: fc.constant(name),
          offer: fc.option(
            fc.record({
              tools: fc.array(fc.record({ name: names.tool, annotations: hints })),
              prompts: fc.array(fc.record({ name: names.prompt })),
              resources: fc.array(fc.record({ uri: names.resource })),
              templates: fc.array(templates.map(({ name: uriTemplate }) => ({ uriTemplate }))),
            }),
            { nil: undefined },
          ),
        }),
      ),
    ),
  )
  .map((members) => {
    const name = members.length === 1 ? members[0]!.name : 'pool';
    return { name, members } as unknown as Group;
  });

/** What somebody may do, and what it is about. */
const cases: fc.Arbitrary<{ facts: RoleFacts; item: Item }> = items.chain((item) =>
  fc.record({ facts: fc.record({ members, grants, rules: rulesNear(item) }), item: fc.constant(item) }),
);

function permissionsOf(facts: RoleFacts): Permissions {
  const policy = new Policy({ ended() {}, changed() {}, keyEnded() {}, applied() {} });
  const principal = { id: ME, kind: 'key' as const, name: 'me', expiresAt: undefined };
  policy.apply({ principals: [principal], secrets: [], limits: [], ...facts });
  return policy.get(ME)!.permissions;
}

function settings(numRuns: number) {
  return { seed: SEED, numRuns, verbose: 0 } as const;
}

describe('the decision', () => {
  it(`is what the model says, in ${CASES} cases, and the same for lists and for calls`, () => {
    const outcomes = { allowedByRule: 0, deniedByRule: 0, byRole: 0, contested: 0 };
    fc.assert(
      fc.property(cases, ({ facts, item }) => {
        const permissions = permissionsOf(facts);
        const see = permissions.decide('see', PROJECT, item);
        const call = permissions.decide('call', PROJECT, item);
        const model = verdict(facts, ME, PROJECT, item);
        // Only the role can make a difference between the two.
        const mayCall = see.isAllowed && permissions.may('call', PROJECT);
        const given = [see.isAllowed, call.isAllowed, see.rule?.effect, mayCall].join();
        const effect = facts.rules.find(({ id }) => id === model.rule)?.effect;
        const expected = [model.see, model.call, effect, model.call].join();
        // So many comparisons with a matcher take most of the time.
        if (given !== expected) expect(given).toBe(expected);
        outcomes[model.rule === undefined ? 'byRole' : see.isAllowed ? 'allowedByRule' : 'deniedByRule']++;
        if (model.isContested) outcomes.contested++;
      }),
      settings(CASES),
    );
    // The cases are not all alike.
    for (const count of Object.values(outcomes)) expect(count).toBeGreaterThan(CASES / 10);
  });

  it('is the same for what lists hide and for calls of it', () => {
    let hiddenCount = 0;
    fc.assert(
      fc.property(cases, offeringGroups, ({ facts }, group) => {
        const permissions = permissionsOf(facts);
        fc.pre(permissions.may('call', PROJECT));
        const isVisible = permissions.visibleIn(PROJECT);
        const hidden = isVisible && hiddenItems(group, isVisible);
        for (const list of offerKinds)
          for (const item of group.members.flatMap(({ offer }) => offer?.[list] ?? [])) {
            const key = String(item[keyOf[list]]);
            const { isAllowed } = permissions.decide('call', PROJECT, itemOf(group, list, key));
            const isListed = hidden === undefined || !isHidden(hidden, list, item);
            expect({ list, key, isListed }).toEqual({ list, key, isListed: isAllowed });
            if (!isListed) hiddenCount++;
          }
      }),
      settings(CASES / 50),
    );
    expect(hiddenCount).toBeGreaterThan(CASES / 100);
  });

  it('does not depend on how a URI is spelled', () => {
    let [denials, misspelled] = [0, 0];
    fc.assert(
      fc.property(
        resources.chain((item) => fc.tuple(fc.constant(item), rulesNear(item), misspellings(item.name))),
        ([item, rules, name]) => {
          const set = new RuleSet(rules);
          const isAllowed = (uri: string) => set.decider({ ...item, name: uri })?.effect !== 'deny';
          if (name !== item.name) misspelled++;
          // A folder may be called with and without a slash.
          if (isAllowed(item.name) || isAllowed(`${item.name}/`)) return;
          denials++;
          expect({ name, isAllowed: isAllowed(name) }).toEqual({ name, isAllowed: false });
        },
      ),
      settings(CASES / 5),
    );
    expect(denials).toBeGreaterThan(CASES / 50);
    expect(misspelled).toBeGreaterThan(CASES / 10);
  });

  it('about completions allows nothing whose URI is denied', () => {
    let allowed = 0;
    fc.assert(
      fc.property(
        templates.chain((item) => fc.tuple(fc.constant(item), rulesNear(item))),
        values,
        values,
        ([item, rules], one, other) => {
          const set = new RuleSet(rules);
          const input = JSON.stringify({
            argument: { name: 'one', value: one },
            context: { arguments: { other } },
          });
          if (set.decider({ ...item, revealsAll: true, input })?.effect === 'deny') return;
          allowed++;
          for (const expand of [String, encodeURIComponent]) {
            const uri = item.name.replace('{one}', () => expand(one)).replace('{other}', () => expand(other));
            // What nobody can read is denied with the rest.
            if (looseSpellings(uri) === undefined) continue;
            const effect = set.decider({ ...item, name: uri })?.effect;
            expect({ uri, isDenied: effect === 'deny' }).toEqual({ uri, isDenied: false });
          }
        },
      ),
      settings(CASES / 5),
    );
    expect(allowed).toBeGreaterThan(CASES / 50);
  });
});

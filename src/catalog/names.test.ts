import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Catalog } from './catalog.ts';
import type { Contribution } from './contribution.ts';
import { qualifiedOf } from './name-prefixes.ts';
import { type Named, type NamingRules, namePrefixesOf, publicNames } from './names.ts';

type NamingMode = NamingRules['mode'];

const modes: NamingMode[] = ['on-conflict', 'always', 'last-wins'];
const valid = /^[A-Za-z0-9_-]{1,64}$/;

/** Few letters, so that names collide: unchanged, joined by the separator, or sanitized. */
const nearNames = fc.string({
  unit: fc.constantFrom('a', 'b', '_', '__', '.', ' ', 'é', '-', '\ud800', '\udfff'),
  maxLength: 4,
});
const longNames = fc.constantFrom('a'.repeat(64), 'a'.repeat(65), `${'a'.repeat(64)}b`, `${'a'.repeat(64)}.`);
const anyNames = fc.oneof({ arbitrary: nearNames, weight: 4 }, fc.string({ unit: 'binary' }), longNames);

it('[P8] unchanged names keep dots and colons, and can be called by their fitted form', () => {
  const named = (...names: string[]) =>
    publicNames(
      names.map((name) => ({ server: 's', prefix: 's', name, isAlias: false })),
      { mode: 'on-conflict', separator: '__', names: 'as-is' },
    ).map(({ listed, fitted }) => [listed, fitted]);
  expect(named('b-one.x', 'plain')).toEqual([
    ['b-one.x', 'b-one_x'],
    ['plain', undefined],
  ]);
  // The fitted name belongs to another tool, or to two.
  expect(named('a.b', 'a_b')).toEqual([
    ['a.b', undefined],
    ['a_b', undefined],
  ]);
  expect(named('a.b', 'a:b')).toEqual([
    ['a.b', undefined],
    ['a:b', undefined],
  ]);
  expect(named('n é', `${'a'.repeat(64)}.`)).toEqual([
    ['n__', undefined],
    [expect.stringMatching(/^a{55}_[0-9a-f]{8}$/), undefined],
  ]);
});

interface Server {
  server: string;
  prefix: string;
  tools: string[];
}

const servers: fc.Arbitrary<Server[]> = fc.uniqueArray(
  fc
    .record({
      server: anyNames,
      prefix: fc.option(nearNames, { nil: undefined }),
      tools: fc.uniqueArray(anyNames, { maxLength: 6 }),
    })
    .map(({ server, prefix, tools }) => ({ server, prefix: prefix ?? server, tools })),
  { selector: ({ server }) => server, maxLength: 5 },
);
/** Groups of servers, some with the name of a member. */
const groups: fc.Arbitrary<Contribution[]> = servers.chain((list) =>
  fc
    .array(fc.record({ members: fc.integer({ min: 1, max: 3 }), isNamedLikeFirst: fc.boolean() }), {
      minLength: list.length,
      maxLength: list.length,
    })
    .map((cuts) => groupsOf(list, cuts)),
);
const rules = fc.record({
  mode: fc.constantFrom(...modes),
  separator: fc.constantFrom('__', '_', '-', '.', '', '::'),
});

function itemsOf(list: readonly Server[]): Named[] {
  return list.flatMap(({ server, prefix, tools }) =>
    tools.map((name) => ({ server, prefix, name, isAlias: false })),
  );
}

function contribution({ server, prefix, tools }: Server): Contribution {
  const offered = { tools: tools.map((name) => ({ name })), resources: [], templates: [], prompts: [] };
  const servers = [{ server, qualifier: server, prefix, ...offered }];
  return {
    qualifier: server,
    group: server,
    project: undefined,
    prefix,
    servers,
    reserved: { tools: [], prompts: [] },
  };
}

function groupsOf(list: Server[], cuts: { members: number; isNamedLikeFirst: boolean }[]): Contribution[] {
  const names = new Set(list.map(({ server }) => server));
  const formed: Contribution[] = [];
  let first = 0;
  for (const { members, isNamedLikeFirst } of cuts) {
    const offers = list.slice(first, first + members).flatMap((server) => contribution(server).servers);
    first += members;
    if (offers.length === 0) break;
    // The configuration rejects a group with the name of a server outside of it.
    let group = isNamedLikeFirst ? offers[0]!.server : `a_${formed.length}`;
    while (!isNamedLikeFirst && names.has(group)) group += '_';
    formed.push({
      qualifier: group,
      group,
      project: undefined,
      prefix: group,
      servers: offers,
      reserved: { tools: [], prompts: [] },
    });
  }
  return formed;
}

function namesByItem(list: readonly Server[], rule: NamingRules) {
  const items = itemsOf(list);
  const names = publicNames(items, rule);
  return new Map(items.map(({ server, name }, index) => [JSON.stringify([server, name]), names[index]!]));
}

describe('public names', () => {
  it('[A2] are valid for model APIs and unique in every mode', () => {
    fc.assert(
      fc.property(servers, rules, (list, rule) => {
        const names = publicNames(itemsOf(list), rule);
        const taken = names.flatMap(({ listed, qualified }) => [
          ...new Set([listed ?? qualified, qualified]),
        ]);
        for (const name of taken) expect(name).toMatch(valid);
        expect(new Set(taken).size).toBe(taken.length);
      }),
      { numRuns: 1_000 },
    );
  });

  it('resolve to the server and its own name, whether listed or qualified [A3]', () => {
    fc.assert(
      fc.property(servers, rules, (list, rule) => {
        const catalog = new Catalog(list.map(contribution), { ...rule, pageSize: 0, maxItems: 1_000 });
        const items = itemsOf(list);
        publicNames(items, rule, namePrefixesOf(list, rule.separator)).forEach(
          ({ listed, qualified }, index) => {
            const { server, name: own } = items[index]!;
            expect(catalog.tool(qualified)).toMatchObject({ group: server, own });
            if (listed !== undefined) expect(catalog.tool(listed)).toMatchObject({ group: server, own });
          },
        );
      }),
      { numRuns: 300 },
    );
  });

  it('of groups and their members are unique, and each resolves to what it names [G4]', () => {
    fc.assert(
      fc.property(groups, rules, (contributions, rule) => {
        const catalog = new Catalog(contributions, { ...rule, pageSize: 0, maxItems: 1_000 });
        const entries = contributions.flatMap(({ group, prefix, servers: members }) => {
          const shared = new Set(members.flatMap(({ tools }) => tools.map(({ name }) => String(name))));
          const pinned = members
            .filter(({ server }) => server !== group)
            .flatMap(({ server, prefix: own, tools }) =>
              tools.map(({ name }) => ({
                item: { server, prefix: own, name: String(name), isAlias: true },
                leadsTo: { group, own: name, server },
              })),
            );
          const common = [...shared].map((name) => ({
            item: { server: group, prefix, name, isAlias: false },
            leadsTo: { group, own: name, server: undefined },
          }));
          return [...common, ...pinned];
        });
        const names = publicNames(
          entries.map(({ item }) => item),
          rule,
          namePrefixesOf(contributions.flatMap(qualifiedOf), rule.separator),
        );
        const taken = names.flatMap(({ listed, qualified }) => [
          ...new Set([listed ?? qualified, qualified]),
        ]);
        for (const name of taken) expect(name).toMatch(valid);
        expect(new Set(taken).size).toBe(taken.length);
        names.forEach(({ listed, qualified }, index) => {
          const { item, leadsTo } = entries[index]!;
          expect(catalog.tool(qualified)).toMatchObject(leadsTo);
          if (listed !== undefined) expect(catalog.tool(listed)).toMatchObject(leadsTo);
          if (item.isAlias) expect(listed).toBeUndefined();
        });
      }),
      { numRuns: 500 },
    );
  });

  it('do not depend on the order of servers and tools, except for which one wins', () => {
    const shuffled = servers.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
    );
    fc.assert(
      fc.property(shuffled, rules, ([list, otherOrder], rule) => {
        const reordered = otherOrder.map((server) => ({ ...server, tools: server.tools.toReversed() }));
        const before = namesByItem(list, rule);
        const after = namesByItem(reordered, rule);
        for (const [item, { listed, qualified }] of before) {
          expect(after.get(item)!.qualified).toBe(qualified);
          if (rule.mode !== 'last-wins') expect(after.get(item)!.listed).toBe(listed);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('do not change when an unrelated server is added', () => {
    fc.assert(
      fc.property(servers, rules, (list, rule) => {
        const stranger = { server: 'zz', prefix: 'zz', tools: ['zz1', 'zz2'] };
        const before = namesByItem(list, rule);
        const after = namesByItem([...list, stranger], rule);
        for (const [item, names] of before) expect(after.get(item)).toEqual(names);
      }),
      { numRuns: 300 },
    );
  });

  it('stay unchanged if they are unique, and otherwise include the server [G2]', () => {
    const list = [
      { server: 'one', prefix: 'one', tools: ['search', 'read'] },
      { server: 'two', prefix: 'second', tools: ['search', 'write'] },
    ];
    const listed = (mode: NamingMode) =>
      publicNames(itemsOf(list), { mode, separator: '__' }).map(({ listed: name }) => name);
    expect(listed('on-conflict')).toEqual(['one__search', 'read', 'second__search', 'write']);
    expect(listed('always')).toEqual(['one__search', 'one__read', 'second__search', 'second__write']);
    expect(listed('last-wins')).toEqual([undefined, 'read', 'search', 'write']);
  });

  it('cannot be hijacked by a server that knows how they are built', () => {
    // "a b" and "a_b" collide in `a_b__tool`; the attacker claims the names that resolve the conflict.
    const victims = [
      { server: 'a b', prefix: 'a b', tools: ['tool'] },
      { server: 'a_b', prefix: 'a_b', tools: ['tool'] },
    ];
    const rule = { mode: 'on-conflict', separator: '__' } as const;
    const attacker = { server: 'evil', prefix: 'a.b', tools: ['tool'] };
    for (let round = 0; round < 4; round++) {
      const names = [...namesByItem([...victims, attacker], rule).values()];
      attacker.tools.push(...names.map(({ qualified }) => qualified.replace(/^a_b__/, '')));
      attacker.tools = [...new Set(attacker.tools)];
      const all = [...namesByItem([...victims, attacker], rule).values()].map(({ qualified }) => qualified);
      expect(new Set(all).size).toBe(all.length);
    }
  });

  it.each(modes)(
    'of another server cannot be claimed by a tool, whether that server exists or not (%s)',
    (mode) => {
      const evil = {
        server: 'evil',
        prefix: 'evil',
        tools: ['go__greet', 'go', 'evil__x', 'my_tools__a', 'p__q'],
      };
      const absent = [
        { server: 'go', prefix: 'go', tools: [] },
        { server: 'other', prefix: 'my tools', tools: [] },
      ];
      const pool = groupsOf(
        [{ server: 'p', prefix: 'p', tools: [] }],
        [{ members: 1, isNamedLikeFirst: false }],
      );
      const rule = { mode, separator: '__', pageSize: 0, maxItems: 1_000 };
      const before = new Catalog([...[evil, ...absent].map(contribution), ...pool], rule);
      for (const name of ['go__greet', 'my_tools__a', 'p__q']) {
        expect(before.tool(name)).toBeUndefined();
        expect(before.tool(`evil__${name}`)).toMatchObject({ group: 'evil', own: name });
      }
      const isQualified = mode === 'always';
      expect(before.namedTools.map(({ listed }) => listed)).toEqual([
        'evil__go__greet',
        isQualified ? 'evil__go' : 'go',
        isQualified ? 'evil__evil__x' : 'evil__x',
        'evil__my_tools__a',
        'evil__p__q',
      ]);
      const go = { server: 'go', prefix: 'go', tools: ['greet'] };
      const after = new Catalog([evil, go].map(contribution), rule);
      expect(after.tool('go__greet')).toMatchObject({ group: 'go', own: 'greet' });
    },
  );

  it('of another server cannot be claimed with dots or a hash either', () => {
    const long = 'l'.repeat(60);
    const hashed = publicNames(itemsOf([{ server: long, prefix: long, tools: ['tool'] }]), {
      mode: 'always',
      separator: '__',
    })[0]!.listed!;
    const names = (separator: string, tool: string) =>
      publicNames(
        [{ server: 'evil', prefix: 'evil', name: tool, isAlias: false }],
        { mode: 'on-conflict', separator, names: 'as-is' },
        namePrefixesOf(
          ['evil', 'go', long].map((server) => ({ server, prefix: server })),
          separator,
        ),
      )[0]!;
    expect(names('__', hashed).listed).toMatch(/^evil__l/);
    expect(names('.', 'go.greet')).toMatchObject({ listed: 'evil_go_greet', fitted: undefined });
    expect(names('__', 'go..greet')).toMatchObject({ listed: 'go..greet', fitted: undefined });
  });

  it('that a later server hides can still be called by their qualified form', () => {
    const list = ['one', 'two'].map((server) => ({ server, prefix: server, tools: ['search'] }));
    const catalog = new Catalog(list.map(contribution), {
      mode: 'last-wins',
      separator: '__',
      pageSize: 0,
      maxItems: 1_000,
    });
    expect(catalog.tool('search')).toMatchObject({ group: 'two', own: 'search' });
    expect(catalog.tool('one__search')).toMatchObject({ group: 'one', own: 'search' });
    expect(catalog.warnings).toEqual([
      'tool "search" of server "one" is hidden by a later one; call it "one__search"',
    ]);
  });

  it('of one server that collide after sanitizing are told apart', () => {
    const names = publicNames(itemsOf([{ server: 's', prefix: 's', tools: ['a.b', 'a b'] }]), {
      mode: 'on-conflict',
      separator: '__',
    }).map(({ listed }) => listed!);
    expect(names[0]).toMatch(/^s__a_b_[0-9a-f]{8}$/);
    expect(names[1]).toMatch(/^s__a_b_[0-9a-f]{8}$/);
    expect(names[0]).not.toBe(names[1]);
  });
});

it('names that differ only in unpaired surrogates are told apart', () => {
  const names = publicNames(
    ['\ud800', '\ud801', '\udfff'].map((name) => ({ server: 's', prefix: 's', name, isAlias: false })),
    { mode: 'on-conflict', separator: '__' },
  );
  expect(new Set(names.map(({ listed }) => listed)).size).toBe(3);
});

describe('a name', () => {
  const listed = (name: string) =>
    publicNames([{ server: 's', prefix: 's', name, isAlias: false }], {
      mode: 'on-conflict',
      separator: '__',
    })[0]!.listed!;

  it('stays unchanged if it is valid', () => {
    fc.assert(
      fc.property(fc.stringMatching(valid), (name) => {
        expect(listed(name)).toBe(name);
      }),
    );
  });

  it('that is too long keeps its beginning and gets a hash of the whole', () => {
    const [one, other] = ['x', 'y'].map((end) => listed(`${'tool'.repeat(20)}${end}`));
    expect(one).toMatch(/^(tool){13}too_[0-9a-f]{8}$/);
    expect(one).not.toBe(other);
    expect(listed('')).toMatch(valid);
  });
});

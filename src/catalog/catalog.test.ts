import { describe, expect, it } from 'vitest';
import { Catalog } from './catalog.ts';
import type { Contribution, ServerOffer } from './contribution.ts';

const rules = { mode: 'on-conflict', separator: '__', pageSize: 0, maxItems: 1_000 } as const;

function offer(server: string, offered: Partial<ServerOffer>): ServerOffer {
  const nothing = { tools: [], resources: [], templates: [], prompts: [] };
  return { server, qualifier: server, prefix: server, ...nothing, ...offered };
}

function contribution(server: string, offered: Partial<ServerOffer>): Contribution {
  return group(server, offer(server, offered));
}

function group(name: string, ...servers: ServerOffer[]): Contribution {
  return {
    qualifier: name,
    group: name,
    project: undefined,
    prefix: name,
    servers,
    reserved: { tools: [], prompts: [] },
  };
}

function listed(catalog: Catalog, name: keyof Catalog['lists']): unknown {
  return JSON.parse(catalog.lists[name].page(undefined)!.toString());
}

describe('a catalog', () => {
  it('[A12] keeps tool names stable when other tools are switched on or off', () => {
    const one = { ...contribution('one', {}), reserved: { tools: ['a'], prompts: [] } };
    const two = contribution('two', { tools: [{ name: 'a' }] });
    const namesIn = (...offered: Contribution[]) => {
      const { tools } = listed(new Catalog(offered, rules), 'tools') as { tools: { name: string }[] };
      return tools.map(({ name }) => name);
    };
    expect(namesIn(one, two)).toEqual(['two__a']);
    expect(namesIn(two, one)).toEqual(['two__a']);
    expect(new Catalog([one, two], rules).tool('one__a')).toBeUndefined();
    const lastWins = new Catalog([two, one], { ...rules, mode: 'last-wins' });
    expect(lastWins.tool('a')).toMatchObject({ group: 'two' });
    expect(lastWins.warnings).toEqual([]);
  });

  it('[A2, G1] adds the server to every item and changes nothing else', () => {
    const tool = { name: 'a', inputSchema: { type: 'object' }, unknown: [1], _meta: { 'x/y': 1 } };
    const catalog = new Catalog([contribution('one', { tools: [tool] })], rules);
    expect(listed(catalog, 'tools')).toEqual({
      tools: [{ ...tool, _meta: { 'x/y': 1, 'dev.switchboard/server': 'one' } }],
    });
  });

  it('[G10] lists the resources and templates of all servers under public URIs', () => {
    const catalog = new Catalog(
      [
        contribution('one', { resources: [{ uri: 'a:1', name: 'x' }] }),
        contribution('two', {
          resources: [{ uri: 'a:1' }],
          templates: [{ uriTemplate: 'b:{id}', name: 'y' }],
        }),
      ],
      rules,
    );
    const meta = (server: string) => ({ 'dev.switchboard/server': server });
    expect(listed(catalog, 'resources')).toEqual({
      resources: [
        { uri: 'resource://one/a:1', name: 'x', _meta: meta('one') },
        { uri: 'resource://two/a:1', _meta: meta('two') },
      ],
    });
    expect(listed(catalog, 'templates')).toEqual({
      resourceTemplates: [{ uriTemplate: 'resource://two/b:{id}', name: 'y', _meta: meta('two') }],
    });
  });

  it('[G11] makes a link public under its owner if exactly one other server lists it', () => {
    const catalog = new Catalog(
      [
        contribution('one', { resources: [{ uri: 'a:one' }, { uri: 'a:both' }, { uri: 'b:7' }] }),
        contribution('two', { resources: [{ uri: 'a:both' }], templates: [{ uriTemplate: 'b:{id}' }] }),
        group('pool', offer('three', { resources: [{ uri: 'a:three' }] }), offer('four', {})),
      ],
      rules,
    );
    expect(catalog.linkQualifier('a:one', 'two')).toBe('one');
    expect(catalog.linkQualifier('a:one', 'one')).toBe('one');
    expect(catalog.linkQualifier('a:three', 'one')).toBe('pool');
    expect(catalog.linkQualifier('a:three', 'four')).toBe('four');
    // Several servers list it, or none does, or a template of the linking server matches it.
    expect(catalog.linkQualifier('a:both', 'pool')).toBe('pool');
    expect(catalog.linkQualifier('z:1', 'pool')).toBe('pool');
    expect(catalog.linkQualifier('b:7', 'two')).toBe('two');
  });

  it('[G10, G11] finds the owner of a resource by any of its URIs', () => {
    const catalog = new Catalog(
      [
        contribution('one', { resources: [{ uri: 'a:both' }, { uri: 'a:one' }, { uri: 'resource://x/y' }] }),
        contribution('two', { resources: [{ uri: 'a:both' }], templates: [{ uriTemplate: 'b:{id}' }] }),
        contribution('three', { templates: [{ uriTemplate: 'c:{id}' }, { uriTemplate: 'b:7{id}' }] }),
      ],
      rules,
    );
    expect(catalog.resource('resource://two/a:both')).toMatchObject({ group: 'two', own: 'a:both' });
    expect(catalog.resource('resource://two/never:listed')).toMatchObject({
      group: 'two',
      own: 'never:listed',
    });
    expect(catalog.resource('resource://four/a:both')).toBeUndefined();
    expect(catalog.resource('resource://x/y')).toMatchObject({ group: 'one', own: 'resource://x/y' });
    expect(catalog.resource('a:one')).toMatchObject({ group: 'one', own: 'a:one' });
    expect(catalog.resource('a:both')).toBeUndefined();
    expect(catalog.resource('b:6')).toMatchObject({ group: 'two', own: 'b:6' });
    expect(catalog.resource('b:71')).toBeUndefined();
    expect(catalog.resource('z:1')).toBeUndefined();
  });

  it('[G11] resolves a reference from one server to another', () => {
    const own = 'resource://two/mine';
    const catalog = new Catalog(
      [contribution('one', { resources: [{ uri: own }] }), contribution('two', {})],
      rules,
    );
    expect(catalog.resource('resource://one/resource://two/a:1')).toMatchObject({ group: 'two', own: 'a:1' });
    expect(catalog.resource(`resource://one/${own}`)).toMatchObject({ group: 'one', own });
    expect(catalog.resource('resource://one/resource://nobody/a:1')).toMatchObject({
      group: 'one',
      own: 'resource://nobody/a:1',
    });
  });

  it('keeps tools and prompts with the same name apart', () => {
    const catalog = new Catalog(
      [contribution('one', { tools: [{ name: 'x' }] }), contribution('two', { prompts: [{ name: 'x' }] })],
      rules,
    );
    expect(catalog.tool('x')).toMatchObject({ group: 'one', own: 'x' });
    expect(catalog.prompt('x')).toMatchObject({ group: 'two', own: 'x' });
    expect(catalog.tool('two__x')).toBeUndefined();
  });

  it('keeps the first of duplicate items, and skips items without a name', () => {
    const tools = [{ name: 'x', title: 'first' }, { name: 'x', title: 'second' }, { name: 7 }, {}];
    const catalog = new Catalog([contribution('one', { tools })], rules);
    expect(listed(catalog, 'tools')).toMatchObject({ tools: [{ name: 'x', title: 'first' }] });
    expect(catalog.lists.tools.length).toBe(1);
  });

  it('[A4] does not resolve names that JavaScript objects inherit', () => {
    const catalog = new Catalog([], rules);
    for (const name of ['constructor', '__proto__', 'toString']) {
      expect(catalog.tool(name)).toBeUndefined();
      expect(catalog.prompt(name)).toBeUndefined();
      expect(catalog.resource(name)).toBeUndefined();
    }
  });
});

describe('a group in a catalog', () => {
  const readOnly = { annotations: { readOnlyHint: true } };
  const search = (server: string, more: object = {}) =>
    offer(server, { tools: [{ name: 'search', title: server, ...more }], prompts: [{ name: 'ask' }] });

  it('[G4] lists shared items once, as the first server describes them, and names their servers', () => {
    const catalog = new Catalog([group('pool', search('one'), search('two'))], rules);
    const from = { 'dev.switchboard/server': 'one', 'dev.switchboard/group': 'pool' };
    expect(listed(catalog, 'tools')).toEqual({ tools: [{ name: 'search', title: 'one', _meta: from }] });
    expect(listed(catalog, 'prompts')).toEqual({ prompts: [{ name: 'ask', _meta: from }] });
    expect(catalog.warnings).toEqual([]);
  });

  it('[G4] routes its own names to any of its servers, and qualified names to one', () => {
    const catalog = new Catalog([group('pool', search('one'), search('two'))], rules);
    for (const kind of ['tool', 'prompt'] as const) {
      const own = kind === 'tool' ? 'search' : 'ask';
      expect(catalog[kind](own)).toMatchObject({ group: 'pool', own, server: undefined });
      expect(catalog[kind](`pool__${own}`)).toMatchObject({ group: 'pool', own, server: undefined });
      expect(catalog[kind](`one__${own}`)).toMatchObject({ group: 'pool', own, server: 'one' });
      expect(catalog[kind](`two__${own}`)).toMatchObject({ group: 'pool', own, server: 'two' });
      expect(catalog[kind](`three__${own}`)).toBeUndefined();
    }
  });

  it('gives a server only the names of what it offers', () => {
    const catalog = new Catalog(
      [group('pool', search('one'), offer('two', { tools: [{ name: 'extra' }] }))],
      rules,
    );
    expect(catalog.tool('two__extra')).toMatchObject({ server: 'two' });
    expect(catalog.tool('two__search')).toBeUndefined();
    expect(catalog.tool('extra')).toMatchObject({ group: 'pool', server: undefined });
  });

  it('that shares the name of a member means all members by that name', () => {
    const catalog = new Catalog([group('one', search('one'), search('two'))], rules);
    expect(catalog.tool('one__search')).toMatchObject({ group: 'one', server: undefined });
    expect(catalog.tool('two__search')).toMatchObject({ group: 'one', server: 'two' });
    expect(catalog.resource('resource://one/a:1')).toMatchObject({ group: 'one', server: undefined });
  });

  it('conflicts with others as one unit, under its own name', () => {
    const catalog = new Catalog(
      [group('pool', search('one'), search('two')), contribution('three', { tools: [{ name: 'search' }] })],
      rules,
    );
    expect(listed(catalog, 'tools')).toMatchObject({
      tools: [{ name: 'pool__search' }, { name: 'three__search' }],
    });
    expect(catalog.tool('search')).toBeUndefined();
    expect(catalog.tool('one__search')).toMatchObject({ group: 'pool', server: 'one' });
  });

  it('retries only what every server declares harmless; a named server decides for itself', () => {
    const idempotent = { annotations: { idempotentHint: true } };
    const harmless = new Catalog([group('pool', search('one', readOnly), search('two', idempotent))], rules);
    expect(harmless.tool('search')?.isRepeatable).toBe(true);
    const mixed = new Catalog([group('pool', search('one', readOnly), search('two'))], rules);
    expect(mixed.tool('search')?.isRepeatable).toBe(false);
    expect(mixed.tool('one__search')?.isRepeatable).toBe(true);
    expect(mixed.tool('two__search')?.isRepeatable).toBe(false);
    expect(mixed.prompt('ask')?.isRepeatable).toBe(true);
  });

  it('[G10] has public URIs with its name; those with a member’s name lead to that member', () => {
    const shared = { resources: [{ uri: 'a:1' }], templates: [{ uriTemplate: 'b:{id}' }] };
    const catalog = new Catalog([group('my pool', offer('one', shared), offer('two', shared))], rules);
    expect(listed(catalog, 'resources')).toMatchObject({ resources: [{ uri: 'resource://my%20pool/a:1' }] });
    expect(listed(catalog, 'templates')).toMatchObject({
      resourceTemplates: [{ uriTemplate: 'resource://my%20pool/b:{id}' }],
    });
    expect(catalog.resource('resource://my%20pool/b:7')).toMatchObject({
      group: 'my pool',
      server: undefined,
    });
    expect(catalog.resource('resource://two/a:1')).toMatchObject({ group: 'my pool', server: 'two' });
    expect(catalog.resource('a:1')).toMatchObject({ group: 'my pool', own: 'a:1', server: undefined });
    expect(catalog.resource('b:7')).toMatchObject({ group: 'my pool', own: 'b:7', server: undefined });
  });

  it('finds the members whose templates match a resource', () => {
    const template = (server: string, uriTemplate: string) => offer(server, { templates: [{ uriTemplate }] });
    const catalog = new Catalog(
      [
        group(
          'pool',
          template('one', 'day:{day}'),
          template('two', 'day:{day}'),
          template('three', 'x:{id}'),
        ),
        contribution('alone', { templates: [{ uriTemplate: 'y:{id}' }] }),
      ],
      rules,
    );
    expect(catalog.resource('resource://pool/day:1')?.among).toEqual(['one', 'two']);
    expect(catalog.resource('x:1')?.among).toEqual(['three']);
    expect(catalog.resource('resource://pool/z:1')?.among).toBeUndefined();
    expect(catalog.resource('y:1')?.among).toBeUndefined();
  });
});

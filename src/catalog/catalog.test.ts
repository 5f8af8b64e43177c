import { describe, expect, it } from 'vitest';
import { Catalog, type Contribution, type ServerOffer } from './catalog.ts';

const rules = { mode: 'on-conflict', separator: '__', pageSize: 0 } as const;

function offer(server: string, offered: Partial<ServerOffer>): ServerOffer {
  return { server, prefix: server, tools: [], resources: [], templates: [], prompts: [], ...offered };
}

function contribution(server: string, offered: Partial<ServerOffer>): Contribution {
  return { group: server, prefix: server, servers: [offer(server, offered)] };
}

function listed(catalog: Catalog, name: keyof Catalog['lists']): unknown {
  return JSON.parse(catalog.lists[name].page(undefined)!.toString());
}

describe('a catalog', () => {
  it('[A2, G1] says of everything which server it is from, and changes nothing else of it', () => {
    const tool = { name: 'a', inputSchema: { type: 'object' }, unknown: [1], _meta: { 'x/y': 1 } };
    const catalog = new Catalog([contribution('one', { tools: [tool] })], rules);
    expect(listed(catalog, 'tools')).toEqual({
      tools: [{ ...tool, _meta: { 'x/y': 1, 'dev.switchboard/server': 'one' } }],
    });
  });

  it('[G10] has the resources and templates of all servers under public URIs', () => {
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

  it('[G10, G11] finds the owner of a resource, by any of its URIs', () => {
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

  it('[G11] follows a reference of one server to another', () => {
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

  it('keeps tools and prompts of the same name apart', () => {
    const catalog = new Catalog(
      [contribution('one', { tools: [{ name: 'x' }] }), contribution('two', { prompts: [{ name: 'x' }] })],
      rules,
    );
    expect(catalog.tool('x')).toMatchObject({ group: 'one', own: 'x' });
    expect(catalog.prompt('x')).toMatchObject({ group: 'two', own: 'x' });
    expect(catalog.tool('two__x')).toBeUndefined();
  });

  it('takes the first of what a server lists twice, and nothing without a name', () => {
    const tools = [{ name: 'x', title: 'first' }, { name: 'x', title: 'second' }, { name: 7 }, {}];
    const catalog = new Catalog([contribution('one', { tools })], rules);
    expect(listed(catalog, 'tools')).toMatchObject({ tools: [{ name: 'x', title: 'first' }] });
    expect(catalog.lists.tools.length).toBe(1);
  });

  it('[A4] knows no names that mean something to JavaScript alone', () => {
    const catalog = new Catalog([], rules);
    for (const name of ['constructor', '__proto__', 'toString']) {
      expect(catalog.tool(name)).toBeUndefined();
      expect(catalog.prompt(name)).toBeUndefined();
      expect(catalog.resource(name)).toBeUndefined();
    }
  });
});

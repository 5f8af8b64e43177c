import { expect, it } from 'vitest';
import { Catalog } from '../catalog/catalog.ts';
import { FormerNames, moment } from './former-names.ts';

const rules = { mode: 'on-conflict', separator: '__', pageSize: 0, maxItems: 100 } as const;

function catalogOf(...servers: string[]): Catalog {
  return catalogWith(Object.fromEntries(servers.map((server) => [server, ['greet']])));
}

function catalogWith(servers: Record<string, string[]>): Catalog {
  const contributions = Object.entries(servers).map(([server, tools]) => {
    const offer = { tools: tools.map((name) => ({ name })), resources: [], templates: [], prompts: [] };
    const shown = { qualifier: server, prefix: server };
    const servers = [{ ...shown, server, ...offer }];
    return { ...shown, group: server, project: undefined, servers, reserved: { tools: [], prompts: [] } };
  });
  return new Catalog(contributions, rules);
}

it('a former name works for every client that has seen it, at any time', () => {
  const names = new FormerNames();
  const [alone, both] = [catalogOf('a'), catalogOf('a', 'b')];
  const shownTo = (catalog: Catalog) => {
    names.show(catalog);
    return moment();
  };
  const first = shownTo(alone);
  names.replace(both);
  const between = shownTo(both);
  names.replace(alone);
  const second = shownTo(alone);
  names.replace(both);
  for (const listedAt of [first, between, second, undefined])
    expect(names.find('tools', 'greet', listedAt, both)).toMatchObject({ group: 'a', own: 'greet' });
  expect(names.find('tools', 'greet', shownTo(both), both)).toBeUndefined();
});

it('a former name does not resolve if it is now the qualified name of another server', () => {
  const names = new FormerNames();
  names.show(catalogWith({ evil: ['go__greet'] }));
  const configured = catalogWith({ evil: ['go__greet'], go: [] });
  names.replace(configured);
  expect(names.find('tools', 'go__greet', undefined, configured)).toBeUndefined();
});

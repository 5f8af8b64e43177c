import { describe, expect, it } from 'vitest';
import { Catalog } from './catalog.ts';
import type { Contribution } from './contribution.ts';

const rules = { mode: 'on-conflict', separator: '__', pageSize: 0 } as const;

function contribution(server: string, tools: number, prompts: number): Contribution {
  const items = (kind: string, length: number) =>
    Array.from({ length }, (_, index) => ({ name: `${server}-${kind}-${index}` }));
  const offer = { server, qualifier: server, prefix: server, resources: [], templates: [] };
  return {
    qualifier: server,
    group: server,
    project: undefined,
    prefix: server,
    servers: [{ ...offer, tools: items('tool', tools), prompts: items('prompt', prompts) }],
    reserved: { tools: [], prompts: [] },
  };
}

const offered = [contribution('a', 3, 2), contribution('b', 4, 2), contribution('c', 2, 2)];

describe('the combined offer of all servers', () => {
  it('is complete up to the limit', () => {
    const catalog = new Catalog(offered, { ...rules, maxItems: 15 });
    expect([catalog.lists.tools.length, catalog.lists.prompts.length]).toEqual([9, 6]);
    expect(catalog.leftOut).toEqual([]);
  });

  it('is cut above the limit, tools last, and reports what is left out', () => {
    const catalog = new Catalog(offered, { ...rules, maxItems: 8 });
    expect([catalog.lists.tools.length, catalog.lists.prompts.length]).toEqual([8, 0]);
    expect(catalog.tool('c-tool-0')).toBeDefined();
    expect(catalog.tool('c-tool-1')).toBeUndefined();
    expect(catalog.leftOut[0]).toBe(
      '1 tools of server "c" are left out: all servers together offer 15 items, over the limit of 8 (setting maxCatalogItems)',
    );
    expect(catalog.leftOut).toHaveLength(4);
  });
});

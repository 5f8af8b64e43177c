import { describe, expect, it } from 'vitest';
import { runCli } from '../helpers/cli.ts';
import { exchange, RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Site } from '../projects/site.ts';
import { type ModernBehaviour, ModernPeer, tool } from './modern-peer.ts';
import { RawModern } from './raw-modern.ts';

const toolsChanged = 'notifications/tools/list_changed';

function listing(more: object, ...names: string[]): ModernBehaviour {
  return { lists: { 'tools/list': () => ({ tools: names.map((name) => tool(name)), ...more }) } };
}

async function cachedAs(client: RawModern, meta: object = {}) {
  const { result = {} } = await client.request('tools/list', {}, { meta });
  return { ttlMs: result.ttlMs as number, cacheScope: result.cacheScope };
}

it('a list without change notifications is requested again after its ttl', async () => {
  const tools = [tool('first')];
  await using peer = await ModernPeer.start({
    quiet: { lists: { 'tools/list': () => ({ tools, ttlMs: 1, cacheScope: 'public' }) } },
  });
  await using switchboard = await startSwitchboard(peer.configuration());
  const client = new RawModern(switchboard.url);
  const { stream } = await client.listen({ toolsListChanged: true });
  expect(await client.toolNames()).toEqual(['first']);
  tools.push(tool('second'));
  // Lists are refreshed on demand, at most once per second.
  while ((await client.toolNames()).length < 2);
  await stream.message(({ method }) => method === toolsChanged);
  expect(await client.toolNames()).toEqual(['first', 'second']);
  await stream.cut();
});

it('a list with change notifications is not requested again', async () => {
  await using peer = await ModernPeer.start({
    telling: { ...listing({ ttlMs: 0 }, 'one'), capabilities: { tools: { listChanged: true } } },
    quiet: listing({ ttlMs: 0 }, 'two'),
  });
  await using switchboard = await startSwitchboard(peer.configuration());
  const client = new RawModern(switchboard.url);
  const asked = (name: string) => peer.seen('tools/list').filter(({ path }) => path === `/${name}`).length;
  while (asked('quiet') < 2) await client.toolNames();
  const before = asked('telling');
  while (asked('quiet') < 4) await client.toolNames();
  expect(asked('telling')).toBe(before);
});

describe('the cache hint of a list', () => {
  it.each([
    ['public', [60_000, 'public'], [90_000, 'public'], 'public', 60_000],
    ['private where one is', [60_000, 'public'], [90_000, 'private'], 'private', 60_000],
    ['not to be kept where one is', [0, 'public'], [90_000, 'public'], 'public', 0],
    ['kept for a day at the most', [1e12, 'public'], [1e12, 'public'], 'public', 86_400_000],
  ] as const)('is %s', async (_what, one, two, cacheScope, ttlMs) => {
    const server = ([ttl, scope]: readonly [number, string], name: string) =>
      listing({ ttlMs: ttl, cacheScope: scope }, name);
    await using peer = await ModernPeer.start({ one: server(one, 'a'), two: server(two, 'b') });
    await using switchboard = await startSwitchboard(peer.configuration());
    const client = new RawModern(switchboard.url);
    const first = await cachedAs(client);
    expect(first.cacheScope).toBe(cacheScope);
    expect(first.ttlMs).toBeLessThanOrEqual(ttlMs);
    expect(first.ttlMs).toBeGreaterThanOrEqual(Math.max(0, ttlMs - 30_000));
    expect(Number.isSafeInteger(first.ttlMs)).toBe(true);
  });

  it('is private if the request selected the project', async () => {
    await using peer = await ModernPeer.start({ one: listing({ ttlMs: 60_000, cacheScope: 'public' }, 'a') });
    await using site = await Site.start('server');
    const project = await site.createProject('mine');
    await project.add('one', { transport: 'http', config: { url: peer.url('one') } });
    const all = new RawModern(`${site.baseUrl}/mcp`);
    expect(await cachedAs(all)).toMatchObject({ cacheScope: 'public' });
    expect(await cachedAs(new RawModern(`${site.baseUrl}/mcp/mine`))).toMatchObject({
      cacheScope: 'private',
    });
    expect(await cachedAs(all, { projectId: 'mine' })).toMatchObject({ cacheScope: 'private' });
  });

  it('is a whole number of milliseconds, whatever servers send', async () => {
    await using peer = await ModernPeer.start({
      one: listing({ ttlMs: 60_000.5, cacheScope: 'public' }, 'a'),
    });
    await using switchboard = await startSwitchboard(peer.configuration());
    const { ttlMs } = await cachedAs(new RawModern(switchboard.url));
    expect(Number.isInteger(ttlMs)).toBe(true);
  });
});

it('a long list is paged', async () => {
  const names = Array.from({ length: 7 }, (_, index) => `tool_${index}`);
  await using peer = await ModernPeer.start({ one: listing({}, ...names) });
  await using switchboard = await startSwitchboard(peer.configuration(), { pageSize: 3 });
  const client = new RawModern(switchboard.url);
  const pages: string[][] = [];
  let cursor: unknown;
  do {
    const { result = {} } = await client.request('tools/list', cursor === undefined ? {} : { cursor });
    expect(result).toMatchObject({ resultType: 'complete', ttlMs: 0, cacheScope: 'private' });
    pages.push((result.tools as { name: string }[]).map(({ name }) => name));
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  expect(pages).toEqual([names.slice(0, 3), names.slice(3, 6), names.slice(6)]);
  for (const wrong of ['', 'nonsense', 1])
    expect(await client.request('tools/list', { cursor: wrong })).toMatchObject({ error: { code: -32602 } });
});

it('a tool whose arguments cannot be headers is left out over HTTP, with the reason in the log', async () => {
  const bad = { inputSchema: { type: 'object', properties: { a: { type: 'number', 'x-mcp-header': 'A' } } } };
  const good = {
    inputSchema: { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'A' } } },
  };
  await using peer = await ModernPeer.start({
    one: {
      lists: {
        'tools/list': () => ({ tools: [tool('bad', bad), tool('n'.repeat(1_025)), tool('good', good)] }),
      },
    },
  });
  await using switchboard = await startSwitchboard(peer.configuration());
  expect(await new RawModern(switchboard.url).toolNames()).toEqual(['good']);
  const { text } = await exchange(`${switchboard.baseUrl}/api/v1/projects/default/servers/one/logs`, {
    method: 'GET',
  });
  expect(text).toContain('\\"bad\\" is left out');
  expect(text).toContain('is left out: its name is longer than 1024 bytes');
  const { stdout } = await runCli(['logs', 'one', '--url', switchboard.baseUrl]);
  expect(stdout).toContain('its tool "bad" is left out: a has a header and is of type number');
});

it('an argument that is too long for its header is rejected, and the server gets the next call', async () => {
  const schema = { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'A' } } };
  await using peer = await ModernPeer.start({
    one: { lists: { 'tools/list': () => ({ tools: [tool('good', { inputSchema: schema })] }) } },
  });
  const { one } = peer.configuration();
  await using switchboard = await startSwitchboard({ one: { ...one, concurrency: 1 } });
  const session = await RawSession.open(switchboard.url);
  await session.toolNames();
  expect((await session.call('good', { a: 'x'.repeat(100_000) })).error).toMatchObject({
    code: -32602,
    message: 'The argument a is too long: the tool wants it repeated in the header mcp-param-a.',
  });
  // The peer's response to every call.
  expect((await session.call('good', { a: 'x' })).error?.message).toBe('Unknown method: tools/call');
  expect(peer.seen('tools/call')).toHaveLength(1);
});

it('a tool whose arguments cannot be headers is listed over stdio, which has no headers', async () => {
  await using switchboard = await startSwitchboard({ worker: fixtureServer('eras/binds-state-to-process') });
  const client = new RawModern(switchboard.url);
  expect(await client.toolNames()).toContain('marked');
  expect(await client.callText('marked', { list: [1] })).toBe('marked');
});

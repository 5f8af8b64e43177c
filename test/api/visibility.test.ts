import { beforeAll, describe, expect, it } from 'vitest';
import type { HostedView } from '../../src/api/hosted-views.ts';
import type { ServerEvent, ServerView, ToolView } from '../../src/api/views.ts';
import { AccessScene, bearer } from '../access/scene.ts';
import { EventStream, openExchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';

interface Key {
  id: string;
  name: string;
  key: string;
}

let scene: AccessScene;
let viewer: Key;
let caller: Key;
let operator: Key;

setUp(async (use) => {
  const guarded = fixtureServer('offers-guarded-items');
  scene = use(
    await AccessScene.start({
      servers: { github: guarded, vault: { ...guarded, group: 'hidden', tools: { deny: ['wait'] } } },
    }),
  );
  viewer = await scene.newKey({ role: 'viewer' });
  caller = await scene.newKey();
  operator = await scene.newKey({ role: 'operator' });
  // Now all servers run.
  await (await scene.session(caller.key)).toolNames();
});

const servers = async ({ key }: Key) =>
  (await scene.done<{ servers: ServerView[] }>('GET /projects/default/servers', undefined, key)).servers;
const tools = async ({ key }: Key) =>
  (await scene.done<{ tools: ToolView[] }>('GET /projects/default/tools', undefined, key)).tools;

async function follow(key: string): Promise<EventStream> {
  const url = `${scene.switchboard.baseUrl}/api/v1/projects/default/events`;
  return new EventStream(await openExchange(url, { method: 'GET', headers: bearer(key) }));
}

/** The next event about that server. */
async function eventAbout(stream: EventStream, name: string, fits: (view: ServerView) => boolean) {
  const { data } = await stream.events.first(({ event, data = '' }) => {
    if (event !== 'server') return false;
    const { server } = JSON.parse(data) as ServerEvent;
    return server.name === name && fits(server);
  });
  return (JSON.parse(data!) as ServerEvent).server;
}

const setEnabled = (name: string, enabled: boolean) =>
  scene.done(`PATCH /projects/default/servers/${name}`, { enabled });

describe('who does not operate a project', () => {
  it('sees its servers without their configuration, and why they fail', async () => {
    for (const key of [viewer, caller]) {
      const views = await servers(key);
      expect(views).toMatchObject([
        { name: 'github', config: null, tools: null, error: null, tool_count: 5 },
        { name: 'vault', config: null, tools: null, group: 'hidden' },
      ]);
      expect(JSON.stringify(views)).not.toContain('offers-guarded-items');
      const one = await scene.done<ServerView>('GET /projects/default/servers/vault', undefined, key.key);
      expect(one).toMatchObject({ name: 'vault', config: null, replicas: [{ error: null }] });
    }
    expect(await servers(operator)).toMatchObject([
      { config: { command: expect.any(String) } },
      { config: { command: expect.any(String) }, tools: { deny: ['wait'] } },
    ]);
  });

  it('learns nothing of the rest of Switchboard from its status', async () => {
    const status = await scene.done<object>('GET /status', undefined, operator.key);
    expect(status).toMatchObject({ config: null, records: null, sessions: null, database: { error: null } });
    expect(await scene.done('GET /status')).toMatchObject({ config: scene.switchboard.configPath });
  });

  it('gets events without configurations, and with them once it is an operator', async () => {
    const changing = await scene.newKey({ role: 'viewer' });
    const stream = await follow(changing.key);
    const first = await stream.events.first(({ event }) => event === 'servers');
    expect(first.data).not.toContain('offers-guarded-items');
    await setEnabled('vault', false);
    expect((await eventAbout(stream, 'vault', ({ state }) => state === 'stopped')).config).toBe(null);
    await scene.done('PUT /grants', { principal: changing.id, project: 'default', role: 'operator' });
    await setEnabled('vault', true);
    const view = await eventAbout(stream, 'vault', ({ state }) => state === 'idle');
    expect(view.config).toMatchObject({ command: expect.any(String) });
    await stream.cut();
  });
});

describe('what rules hide', () => {
  beforeAll(async () => {
    await scene.addRule({ subject: { role: 'caller' }, server: 'vault' });
    await scene.addRule({ subject: { role: 'caller' }, server: 'github', name: 'delete_*' });
    await scene.addRule({ subject: { role: 'operator' }, server: 'vault' });
  });

  it('is missing in servers, tools, counts and projects', async () => {
    expect(await servers(caller)).toMatchObject([{ name: 'github', tool_count: 4, warning: null }]);
    const missing = await scene.ask('GET /projects/default/servers/vault', undefined, caller.key);
    const never = await scene.ask('GET /projects/default/servers/never', undefined, caller.key);
    expect(missing.text).toBe(never.text.replaceAll('never', 'vault'));
    expect((await tools(caller)).map(({ tool }) => tool).toSorted()).toEqual(
      ['create_issue', 'list_repos', 'touch', 'wait'].toSorted(),
    );
    const project = await scene.done<object>('GET /projects/default', undefined, caller.key);
    expect(project).toMatchObject({ server_count: 1 });
  });

  it('is missing in events', async () => {
    const [hiding, all] = [await follow(caller.key), await follow(viewer.key)];
    const first = await hiding.events.first(({ event }) => event === 'servers');
    expect(first.data).not.toContain('vault');
    for (const name of ['vault', 'github']) await setEnabled(name, false);
    await eventAbout(all, 'vault', ({ state }) => state === 'stopped');
    await eventAbout(hiding, 'github', ({ state }) => state === 'stopped');
    expect(JSON.stringify(hiding.events.items)).not.toContain('vault');
    for (const name of ['vault', 'github']) await setEnabled(name, true);
    for (const stream of [hiding, all]) await stream.cut();
  });

  it('is there for those who operate the project', async () => {
    expect((await servers(operator)).map(({ name }) => name)).toEqual(['github', 'vault']);
    expect((await tools(operator)).map(({ server }) => server)).toContain('vault');
  });

  it('does not exist for those who ask what they may do', async () => {
    const can = async (key: Key, name: string) => {
      const query = new URLSearchParams({ project: 'default', name });
      return (await scene.ask(`GET /can?${query}`, undefined, key.key)).text;
    };
    const [hidden, unknown] = [await can(caller, 'delete_repo'), await can(caller, 'destroy_repo')];
    expect(hidden).toBe(unknown.replaceAll('destroy_repo', 'delete_repo'));
    expect(JSON.parse(await can(operator, 'hidden__touch'))).toMatchObject({ allowed: false, rule: {} });
    expect(JSON.parse(await can(caller, 'github__touch'))).toMatchObject({ allowed: true, role: 'caller' });
  });
});

describe('a call to a hosted server', () => {
  let id: string;
  const call = (body: object, { key }: Key) => scene.ask(`POST /mcp/servers/${id}/call`, body, key);
  const named = (name: string) => ({ method: 'tools/call', params: { name } });

  beforeAll(async () => {
    const { command, args } = fixtureServer('offers-guarded-items');
    const body = { name: 'boxed', provider: 'process', command, args };
    ({ id } = await scene.done<HostedView>('POST /mcp/servers', body));
    await scene.addRule({ subject: { role: 'caller' }, server: 'boxed', name: 'delete_*' });
    await scene.addRule({ subject: { role: 'operator' }, server: 'boxed', name: 'touch' });
    await scene.addRule({ subject: 'everyone', kind: 'resource', server: 'boxed', name: 'file:///secret/*' });
    await scene.done(`POST /mcp/servers/${id}/call`, { method: 'ping' });
    // Its tools are known when it is listed.
    await tools(operator);
  });

  it('is decided by role and rules, like any other', async () => {
    const denied = await call(named('delete_repo'), caller);
    const unknown = await call(named('destroy_repo'), caller);
    expect([denied.status, denied.text]).toEqual([
      404,
      unknown.text.replaceAll('destroy_repo', 'delete_repo'),
    ]);
    expect((await call(named('touch'), caller)).status).toBe(200);
    const forbidden = await call(named('touch'), operator);
    expect([forbidden.status, forbidden.text]).toEqual([403, expect.stringContaining('rule')]);
    expect((await call(named('delete_repo'), operator)).status).toBe(200);
    expect((await call(named('touch'), viewer)).status).toBe(403);
  });

  it('has one meaning, whatever its parameters contain', async () => {
    const params = '{"name":"touch","n\\u0061me":"delete_repo","name":"delete_repo"}';
    const url = `${scene.switchboard.baseUrl}/api/v1/mcp/servers/${id}/call`;
    const response = await openExchange(url, {
      headers: { ...bearer(caller.key), 'content-type': 'application/json' },
      body: `{"method":"tools/call","params":{"name":"touch"},"params":${params}}`,
    });
    expect(response.statusCode).toBe(404);
    response.destroy();
    const read = (uri: string) => call({ method: 'resources/read', params: { uri } }, caller);
    expect((await read('file:///public/readme.txt')).status).toBe(200);
    for (const uri of [
      'file:///secret/plan.txt',
      'file:///public/../secret/plan.txt',
      'FILE:///%73ecret/plan.txt',
    ])
      expect((await read(uri)).status, uri).toBe(404);
  });

  it('with another method is for operators', async () => {
    for (const method of ['tools/list', 'completion/complete', 'resources/subscribe', 'ping', '__proto__'])
      expect((await call({ method }, caller)).status, method).toBe(403);
    expect((await call({ method: 'tools/list' }, operator)).status).toBe(200);
    expect((await call({ method: 'tools/call', params: {} }, caller)).status).toBe(403);
  });

  it('does not reach what is switched off', async () => {
    expect((await call(named('create_issue'), caller)).status).toBe(200);
    const [tool] = (await tools(operator)).filter(
      ({ server, tool: own }) => server === 'boxed' && own === 'create_issue',
    );
    await scene.done(`PATCH /projects/default/tools/${tool!.name}`, { enabled: false }, operator.key);
    expect((await call(named('create_issue'), caller)).status).toBe(404);
    expect((await call(named('create_issue'), operator)).status).toBe(200);
  });

  it('is recorded with who made it', async () => {
    const wanted = `GET /projects/default/calls?server=boxed&principal=${caller.name}`;
    for (;;) {
      const { calls } = await scene.done<{ calls: object[] }>(wanted, undefined, operator.key);
      if (calls.length === 0) continue;
      expect(calls[0]).toMatchObject({ principal: { id: caller.id, name: caller.name } });
      return;
    }
  });

  it('does not exist for those who must not see the server', async () => {
    await scene.addRule({ subject: { principal: caller.id }, server: 'boxed' });
    const hidden = await call(named('touch'), caller);
    const never = await scene.ask('POST /mcp/servers/never/call', named('touch'), caller.key);
    expect([hidden.status, hidden.text]).toEqual([404, never.text.replaceAll('never', id)]);
    await scene.audited(`principal=${caller.id}`, ({ subject }) => subject === 'tool * of boxed');
  });
});

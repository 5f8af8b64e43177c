import { describe, expect, it } from 'vitest';
import { API_KEY, calls, type MessagesApi, says, startMessagesApi } from '../agent/messages-api.ts';
import { EventStream, exchange, openExchange, RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Contract } from './contract.ts';

const box = fixtureServer('toolbox');
const stdio = { name: 'made', transport: 'stdio', config: { command: box.command, args: box.args } };
const missing = { transport: 'stdio', config: { command: 'switchboard-has-no-such-command' } };
const manifest = (version: string, ...names: string[]) => ({
  name: 'kit',
  version,
  mcp: { servers: names.map((name) => ({ name, transport: 'http', url: `http://127.0.0.1:1/${version}` })) },
});

describe('the OpenAPI document', () => {
  let switchboard: RunningSwitchboard;
  let contract: Contract;
  let model: MessagesApi;

  setUp(async (use) => {
    model = use(
      await startMessagesApi(({ body }) =>
        body.messages.length === 1 ? calls({ name: 'echo', input: { text: 'well' } }) : says('Well.'),
      ),
    );
    const chat = { baseUrl: model.url };
    switchboard = use(await startSwitchboard({ box }, { chat }, { database: 'shared' }));
    contract = await Contract.read(`${switchboard.baseUrl}/api/v1`);
  });

  const ask: Contract['ask'] = (...question) => contract.ask(...question);
  /** The response, which must have this status, and this code if it is an error. */
  const gets = async (status: number, ...[operation, question]: Parameters<Contract['ask']>) => {
    const answer = await ask(operation, question);
    expect(answer.status, JSON.stringify(answer.body)).toBe(status);
    return answer;
  };
  const fails = async (code: string, ...question: Parameters<Contract['ask']>) => {
    const { body } = await ask(...question);
    expect(body).toMatchObject({ error: { code } });
    return (body as { error: unknown }).error as {
      message: string;
      details: { problems?: { path: string }[] };
    };
  };

  it('matches the responses about Switchboard', async () => {
    const { body } = await gets(200, 'getStatus');
    expect(body.database).toEqual({ mode: 'server', connected: true, error: null });
    await gets(200, 'getOpenapi');
    await fails('invalid_input', 'getStatus', { query: '?verbose=1' });
    await fails('invalid_input', 'getOpenapi', { query: '?x' });
  });

  it('matches the responses about projects', async () => {
    const at = { project: 'web' };
    const { headers, body: made } = await gets(201, 'createProject', { body: { name: 'web' } });
    expect(headers.location).toBe(`/api/v1/projects/${made.id}`);
    expect(headers.etag).toBe(`"${made.version}"`);
    await fails('conflict', 'createProject', { body: { name: 'web' } });
    await fails('invalid_input', 'createProject', { body: { name: '' } });
    const { body: list } = await gets(200, 'listProjects');
    expect(list.projects).toContainEqual(made);
    await fails('invalid_input', 'listProjects', { query: '?limit=1' });
    expect((await gets(200, 'getProject', { at })).body).toEqual(made);
    expect((await gets(200, 'getProject', { at: { project: String(made.id) } })).body).toEqual(made);
    await fails('unknown_project', 'getProject', { at: { project: 'nowhere' } });

    const ifMatch = { 'if-match': headers.etag! };
    const { body: changed } = await gets(200, 'changeProject', {
      ...{ at, headers: ifMatch },
      body: { description: 'Ours', record_payloads: true, retention_days: null },
    });
    expect(changed).toMatchObject({ description: 'Ours', record_payloads: true, retention_days: null });
    expect(changed.version).toBeGreaterThan(Number(made.version));
    await fails('version_conflict', 'changeProject', { at, headers: ifMatch, body: { description: 'Mine' } });
    await fails('version_conflict', 'removeProject', { at, headers: ifMatch });
    await fails('invalid_input', 'removeProject', { at, headers: { 'if-match': 'W/"1"' } });
    await fails('read_only', 'removeProject');
    await gets(204, 'removeProject', { at, headers: { 'if-match': `"${changed.version}"` } });
    await fails('unknown_project', 'changeProject', { at, body: { description: 'Gone' } });
  });

  it('matches the responses about servers', async () => {
    const at = { name: 'made' };
    const { headers, body: made } = await gets(201, 'createServer', { body: stdio });
    expect(headers.location).toBe('/api/v1/projects/default/servers/made');
    expect(headers.etag).toBe(`"${made.version}"`);
    await fails('conflict', 'createServer', { body: stdio });
    const { details } = await fails('invalid_input', 'createServer', {
      body: { ...stdio, name: 'wrong', replicas: 0 },
    });
    expect(details.problems).toMatchObject([{ path: 'replicas' }]);
    const { body: list } = await gets(200, 'listServers');
    expect(list.servers).toMatchObject([{ name: 'box' }, { name: 'made' }]);
    await fails('unknown_project', 'listServers', { at: { project: 'nowhere' } });
    expect((await gets(200, 'getServer', { at })).body).toEqual(made);
    await fails('not_found', 'getServer', { at: { name: 'nobody' } });

    const ifMatch = { 'if-match': headers.etag! };
    const settings = {
      group: 'makers',
      replicas: 2,
      labels: { tier: 'fast' },
      prefix: 'm',
      timeout_ms: 9_000,
    };
    const { body: changed } = await gets(200, 'changeServer', { at, headers: ifMatch, body: settings });
    expect(changed).toMatchObject({ group: 'makers', replica_count: 2, prefix: 'm', timeout_ms: 9_000 });
    await fails('version_conflict', 'changeServer', { at, headers: ifMatch, body: { replicas: 3 } });
    await fails('version_conflict', 'removeServer', { at, headers: ifMatch });
    await fails('read_only', 'changeServer', { at: { name: 'box' }, body: { replicas: 2 } });
    await fails('read_only', 'removeServer', { at: { name: 'box' } });
    const { body: disabled } = await gets(200, 'changeServer', { at, body: { enabled: false } });
    expect(disabled.state).toBe('disabled');
    await gets(200, 'changeServer', {
      at,
      body: { enabled: true, group: null, replicas: null, prefix: null },
    });

    expect((await gets(200, 'testServer', { at })).body).toMatchObject({ ok: true, error: null });
    await gets(201, 'createServer', { body: { name: 'missing', ...missing } });
    const { body: failure } = await gets(200, 'testServer', { at: { name: 'missing' } });
    expect(failure).toMatchObject({ ok: false, error: expect.stringContaining('was not found') });
    await fails('not_found', 'testServer', { at: { name: 'nobody' } });
    await gets(200, 'getServerLog', { at: { name: 'box' } });
    await fails('not_found', 'getServerLog', { at: { name: 'nobody' } });
    await gets(204, 'removeServer', { at });
    await gets(204, 'removeServer', { at: { name: 'missing' } });
    await fails('not_found', 'removeServer', { at });
  });

  it('matches the events of servers', async () => {
    const response = await openExchange(contract.urlOf('followServers'), { method: 'GET' });
    expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'text/event-stream']);
    const stream = new EventStream(response);
    const first = await stream.events.first(({ event }) => event === 'servers');
    contract.checkValue('ServerList', JSON.parse(first.data!));
    await gets(200, 'changeServer', { at: { name: 'box' }, body: { enabled: false } });
    await gets(200, 'changeServer', { at: { name: 'box' }, body: { enabled: true } });
    await gets(200, 'listTools');
    const events = await stream.events.several(3, ({ event }) => event === 'server');
    for (const { data } of events) contract.checkValue('ServerEvent', JSON.parse(data!));
    await stream.cut();
    contract.seen.add('followServers 200');
    await fails('unknown_project', 'followServers', { at: { project: 'nowhere' } });
  });

  it('matches the responses about tools', async () => {
    const { body } = await gets(200, 'listTools');
    expect(body.tools).toContainEqual(
      expect.objectContaining({ qualified_name: 'box__echo', server: 'box' }),
    );
    const at = { tool: 'box__echo' };
    const { body: off } = await gets(200, 'switchTool', { at, body: { enabled: false } });
    expect(off).toMatchObject({ qualified_name: 'box__echo', enabled: false });
    expect((await gets(200, 'listTools')).body.tools).toContainEqual(off);
    await gets(200, 'switchTool', { at, body: { enabled: true } });
    await fails('unknown_tool', 'switchTool', { at: { tool: 'nothing' }, body: { enabled: true } });
    await fails('invalid_input', 'switchTool', { at, body: { enabled: 'no' } });
    await fails('unknown_project', 'listTools', { at: { project: 'nowhere' } });
  });

  it('matches the responses about secrets', async () => {
    const at = { secret: 'TOKEN' };
    const { headers } = await gets(201, 'putSecret', { at, body: { value: 'open sesame' } });
    expect(headers.location).toBe('/api/v1/projects/default/secrets/TOKEN');
    await gets(200, 'putSecret', { at, body: { value: 'close sesame' } });
    await fails('invalid_input', 'putSecret', { at, body: { value: '' } });
    await fails('invalid_input', 'putSecret', { at: { secret: 'not-a-name' }, body: { value: 'x' } });
    const { body } = await gets(200, 'listSecrets');
    expect(body.secrets).toMatchObject([{ name: 'TOKEN', used_by: [] }]);
    expect(JSON.stringify(body)).not.toContain('sesame');
    await fails('unknown_project', 'listSecrets', { at: { project: 'nowhere' } });
    expect((await gets(200, 'rotateSecrets')).body).toMatchObject({ rotated: 1 });
    await fails('invalid_input', 'rotateSecrets', { query: '?now' });
    await gets(204, 'removeSecret', { at });
    await fails('not_found', 'removeSecret', { at });
  });

  it('matches the responses about products', async () => {
    const { headers, body } = await gets(201, 'installProduct', { body: manifest('1', 'one', 'two') });
    expect(headers.location).toBe('/api/v1/projects/default/products/kit');
    expect(body).toMatchObject({ added: ['one', 'two'], changed: [], removed: [], unchanged: [] });
    const upgrade = await gets(200, 'installProduct', { body: manifest('2', 'two', 'three') });
    expect(upgrade.body).toMatchObject({ added: ['three'], changed: ['two'], removed: ['one'] });
    await fails('conflict', 'installProduct', { body: { ...manifest('1', 'two'), name: 'other' } });
    const { details } = await fails('invalid_input', 'installProduct', { body: manifest('3', 'a', 'a') });
    expect(details.problems).toMatchObject([{ path: 'mcp.servers[1].name' }]);
    const { body: list } = await gets(200, 'listProducts');
    expect(list.products).toMatchObject([{ name: 'kit', version: '2', servers: ['two', 'three'] }]);
    await fails('unknown_project', 'listProducts', { at: { project: 'nowhere' } });
    await fails('read_only', 'removeServer', { at: { name: 'two' } });
    await gets(204, 'removeProduct', { at: { product: 'kit' } });
    await fails('not_found', 'removeProduct', { at: { product: 'kit' } });
  });

  it('matches the responses about imports', async () => {
    const body = { mcpServers: { one: missing.config, two: { url: 'http://127.0.0.1:1/' } } };
    expect((await gets(201, 'importServers', { body })).body).toMatchObject({ imported: ['one', 'two'] });
    // An identical server is no conflict.
    expect((await gets(201, 'importServers', { body })).body).toMatchObject({ imported: [] });
    const other = { mcpServers: { ...body.mcpServers, two: { url: 'http://127.0.0.1:2/' } } };
    await fails('conflict', 'importServers', { body: other });
    await gets(201, 'importServers', { query: '?replace=true', body });
    await fails('invalid_input', 'importServers', { body: {} });
    await fails('invalid_input', 'importServers', { query: '?replace=perhaps', body });
    for (const name of ['one', 'two']) await gets(204, 'removeServer', { at: { name } });
  });

  it('matches the responses about hosted servers', async () => {
    const run = { name: 'hosted', command: box.command, args: box.args, provider: 'process' };
    const { headers, body: made } = await gets(201, 'createHosted', {
      body: { ...run, environment: { TOKEN: 'open sesame' }, resource_limits: { memory: '1G' } },
    });
    const at = { id: String(made.id) };
    expect(headers.location).toBe(`/api/v1/mcp/servers/${made.id}`);
    expect(headers.etag).toBe(`"${made.version}"`);
    expect(made).toMatchObject({ project: 'default', environment: ['TOKEN'], hosted_here: true });
    await fails('conflict', 'createHosted', { body: run });
    await fails('conflict', 'createServer', { body: { ...stdio, name: 'hosted' } });
    const { details } = await fails('invalid_input', 'createHosted', { body: { ...run, port: 0 } });
    expect(details.problems).toMatchObject([{ path: 'port' }]);

    const echo = { method: 'tools/call', params: { name: 'echo', arguments: { text: 'well' } } };
    const { body: answer } = await gets(200, 'callHosted', { at, body: echo });
    expect(answer).toMatchObject({ result: { content: [{ type: 'text', text: 'well' }] } });
    await fails('not_found', 'callHosted', { at: { id: 'nobody' }, body: echo });
    await fails('invalid_input', 'callHosted', { at, body: { method: '' } });
    const { body: list } = await gets(200, 'listHosted');
    expect(list.servers).toMatchObject([{ id: made.id, status: 'ready', usage: null }]);
    await fails('unknown_project', 'listHosted', { query: '?project=nowhere' });
    const { body: shown } = await gets(200, 'getHosted', { at: { id: 'hosted' } });
    expect(shown).toMatchObject({ id: made.id, container_status: 'running', usage: expect.any(Object) });
    await fails('not_found', 'getHosted', { at: { id: 'nobody' } });
    const { body: log } = await gets(200, 'getHostedLog', { at });
    expect((log.lines as unknown[]).length).toBeGreaterThan(0);
    await fails('not_found', 'getHostedLog', { at: { id: 'nobody' }, query: '?follow=1' });
    const followed = await openExchange(contract.urlOf('getHostedLog', { at, query: '?follow=1' }), {
      method: 'GET',
    });
    const stream = new EventStream(followed);
    const { data } = await stream.events.first(({ event }) => event === 'line');
    contract.checkValue('HostedLine', JSON.parse(data!));
    await stream.cut();

    const events = new EventStream(await openExchange(contract.urlOf('followServers'), { method: 'GET' }));
    await events.events.first(({ event }) => event === 'servers');
    const { body: restarted } = await gets(200, 'restartHosted', { at });
    const changes = await events.events.several(2, ({ event }) => event === 'hosted');
    for (const { data } of changes) contract.checkValue('HostedEvent', JSON.parse(data!));
    expect(JSON.parse(changes.at(-1)!.data!)).toMatchObject({ server: { name: 'hosted', id: made.id } });
    await events.cut();
    expect(restarted.provider_workspace_id).not.toBe(shown.provider_workspace_id);
    await fails('not_found', 'restartHosted', { at: { id: 'nobody' } });
    const ifMatch = { 'if-match': headers.etag! };
    const { body: changed } = await gets(200, 'changeHosted', {
      ...{ at, headers: ifMatch },
      body: { environment: { LEVEL: 'debug', TOKEN: null }, restart_policy: 'never' },
    });
    expect(changed).toMatchObject({ environment: ['LEVEL'], restart_policy: 'never' });
    await fails('version_conflict', 'changeHosted', { at, headers: ifMatch, body: { enabled: false } });
    expect((await gets(200, 'stopHosted', { at })).body).toMatchObject({ enabled: false });
    await fails('server_unavailable', 'callHosted', { at, body: echo });
    await fails('not_found', 'stopHosted', { at: { id: 'nobody' } });
    expect((await gets(200, 'startHosted', { at })).body).toMatchObject({ enabled: true });
    await fails('not_found', 'startHosted', { at: { id: 'nobody' } });
    expect(JSON.stringify([made, list, shown, log, restarted, changed])).not.toContain('sesame');
    await fails('version_conflict', 'removeHosted', { at, headers: ifMatch });
    await gets(204, 'removeHosted', { at, query: '?volumes=delete' });
    await fails('not_found', 'removeHosted', { at });
  });

  it('matches the responses about call records', async () => {
    await gets(200, 'changeProject', { body: { record_payloads: true } });
    const session = await RawSession.open(switchboard.url);
    for (const text of ['first', 'second']) await session.callText('box__echo', { text });
    await session.end();
    const calls = async (query: string) =>
      (await gets(200, 'listCalls', { query: `?server=box&tool=echo${query}` })).body;
    await expect.poll(async () => (await calls('')).calls).toHaveLength(2);
    const { next_cursor: cursor, ...page } = await calls('&limit=1');
    expect(page.calls).toMatchObject([{ server: 'box', tool: 'echo', status: 'ok', replica: 1 }]);
    expect(JSON.stringify(page.calls)).toContain('second');
    const rest = await calls(`&limit=1&cursor=${cursor}`);
    expect(JSON.stringify(rest.calls)).toContain('first');
    const { details } = await fails('invalid_input', 'listCalls', { query: '?limit=501&since=never' });
    expect(details.problems?.map(({ path }) => path).toSorted()).toEqual(['limit', 'since']);
    await fails('invalid_input', 'listCalls', { query: '?cursor=made-up' });
  });

  it('matches the responses about chats and runs', async () => {
    await fails('missing_secret', 'chat', { body: { input: 'Hello?' } });
    await gets(201, 'putSecret', { at: { secret: 'ANTHROPIC_API_KEY' }, body: { value: API_KEY } });
    const { body: chat } = await gets(200, 'chat', { body: { input: 'Say it!', tools: ['echo'] } });
    expect(chat).toMatchObject({ text: 'Well.', tool_calls: [{ text: 'well' }] });
    await fails('unknown_project', 'chat', { at: { project: 'nowhere' }, body: { input: 'x' } });
    const stream = new EventStream(
      await openExchange(contract.urlOf('chat'), {
        headers: { 'content-type': 'application/json' },
        body: { input: 'Say it!', stream: true },
      }),
    );
    const { data } = await stream.events.first(({ event }) => event === 'done');
    contract.checkValue('Chat', JSON.parse(data!));
    const toolEnd = await stream.events.first(({ event }) => event === 'tool_end');
    contract.checkValue('ChatToolCall', JSON.parse(toolEnd.data!));

    const { body: list } = await gets(200, 'listRuns', { query: '?limit=1' });
    expect(list).toMatchObject({ runs: [{ status: 'completed' }], next_cursor: expect.any(String) });
    await fails('invalid_input', 'listRuns', { query: '?limit=0' });
    const { body: run } = await gets(200, 'getRun', { at: { run: String(chat.run_id) } });
    expect(run).toMatchObject({ id: chat.run_id, tools: ['echo'], tool_calls: [{ tool: 'echo' }] });
    await fails('not_found', 'getRun', { at: { run: 'nothing' } });

    const begun = { agent: 'helper', model: 'some-model', input: 'Add!' };
    const { body: elsewhere } = await gets(201, 'beginRun', { body: begun });
    await fails('invalid_input', 'beginRun', { body: {} });
    const at = { run: String(elsewhere.id) };
    const call = { id: crypto.randomUUID(), step: 1, tool: 'add', server: 'native', status: 'ok' };
    const calls = [{ ...call, input: { one: 1 }, output: { sum: 1 }, duration_ms: 1.5 }];
    await gets(204, 'recordRunCalls', { at, body: { calls } });
    await fails('invalid_input', 'recordRunCalls', { at, body: { calls: [] } });
    await gets(204, 'changeRun', { at, body: { status: 'completed', output: '1', steps: 1 } });
    await fails('not_found', 'changeRun', { at: { run: 'nothing' }, body: {} });
    const { body: done } = await gets(200, 'getRun', { at });
    expect(done).toMatchObject({ agent: 'helper', status: 'completed', tool_calls: [{ tool: 'add' }] });
    await gets(204, 'removeSecret', { at: { secret: 'ANTHROPIC_API_KEY' } });
  });

  it('matches the responses about keys', async () => {
    const { body: who } = await gets(200, 'whoami');
    expect(who).toMatchObject({
      ...{ kind: 'local', id: 'local', authentication: false, groups: [] },
      roles: [{ project: null, role: 'admin' }],
    });
    await fails('invalid_input', 'whoami', { query: '?x' });

    const expires_at = '2999-01-01T00:00:00.000Z';
    const { headers, body: made } = await gets(201, 'createKey', {
      body: { name: 'ci', project: 'default', role: 'caller', expires_at },
    });
    expect(headers.location).toBe(`/api/v1/keys/${made.id}`);
    expect(made).toMatchObject({
      key: expect.stringMatching(/^sbk_/),
      project: { name: 'default' },
      expires_at,
    });
    await fails('conflict', 'createKey', { body: { name: 'ci', project: 'default', role: 'caller' } });
    await fails('unknown_project', 'createKey', { body: { name: 'ci', project: 'nowhere', role: 'caller' } });
    for (const wrong of [
      { name: 'a/b', role: 'caller' },
      { name: made.id, role: 'caller' },
      { name: 'x', role: 'root' },
      { name: 'x', role: 'caller', expires_at: '2000-01-01T00:00:00Z' },
    ])
      await fails('invalid_input', 'createKey', { body: wrong });
    const { key, ...view } = made;
    const { body: list } = await gets(200, 'listKeys', { query: '?project=default' });
    expect(list).toEqual({ keys: [view] });
    await fails('unknown_project', 'listKeys', { query: '?project=nowhere' });
    for (const name of ['ci', 'default/ci', String(made.id)])
      expect((await gets(200, 'getKey', { at: { key: name } })).body).toEqual(view);
    await fails('not_found', 'getKey', { at: { key: 'nobody' } });

    await gets(201, 'createKey', { body: { name: 'ci', role: 'viewer' } });
    const { message } = await fails('conflict', 'getKey', { at: { key: 'ci' } });
    expect(message).toContain('of all projects');
    const at = { key: 'default/ci' };
    const { body: changed } = await gets(200, 'changeKey', { at, body: { name: 'cd', expires_at: null } });
    expect(changed).toEqual({ ...view, name: 'cd', expires_at: null });
    await fails('not_found', 'changeKey', { at, body: { name: 'ce' } });
    const { body: rotated } = await gets(200, 'rotateKey', {
      at: { key: 'cd' },
      body: { overlap_ms: 60_000 },
    });
    expect(rotated.key).not.toBe(key);
    expect(rotated.secrets).toMatchObject([{ expires_at: null }, { expires_at: expect.any(String) }]);
    const { body: alone } = await gets(200, 'rotateKey', { at: { key: 'cd' }, body: {} });
    expect(alone.secrets).toMatchObject([{ expires_at: null }]);
    await fails('invalid_input', 'rotateKey', { at: { key: 'cd' }, body: { overlap_ms: -1 } });
    await gets(204, 'revokeKey', { at: { key: 'cd' } });
    await fails('not_found', 'revokeKey', { at: { key: 'cd' } });
  });

  it('matches the responses about groups and roles', async () => {
    const { body: table } = await gets(200, 'getRoles');
    expect(table.roles).toMatchObject([
      { role: 'viewer', actions: ['see'] },
      ...['caller', 'operator', 'owner', 'admin'].map((role) => ({ role })),
    ]);
    await fails('invalid_input', 'getRoles', { query: '?x' });
    const { headers, body: group } = await gets(201, 'createGroup', { body: { name: 'builders' } });
    expect(headers.location).toBe(`/api/v1/groups/${group.id}`);
    await fails('conflict', 'createGroup', { body: { name: 'builders' } });
    const at = { group: 'builders', principal: 'ci' };
    const json = { 'content-type': 'application/json' };
    await gets(204, 'joinGroup', { at, headers: json });
    await gets(204, 'joinGroup', { at: { ...at, group: String(group.id) }, headers: json });
    await fails('not_found', 'joinGroup', { at: { ...at, principal: 'nobody' }, headers: json });
    await fails('not_found', 'joinGroup', { at: { ...at, group: 'nobodies' }, headers: json });
    const { body: list } = await gets(200, 'listGroups');
    expect(list.groups).toMatchObject([{ name: 'builders', description: null, members: [{ name: 'ci' }] }]);
    await fails('invalid_input', 'listGroups', { query: '?x' });

    const { body: grant } = await gets(200, 'grantRole', {
      body: { group: 'builders', project: 'default', role: 'caller' },
    });
    expect(grant).toMatchObject({
      holder: { kind: 'group', id: group.id, name: 'builders' },
      role: 'caller',
    });
    await gets(200, 'grantRole', { body: { principal: 'ci', role: 'operator' } });
    for (const holder of [{}, { principal: 'ci', group: 'builders' }])
      await fails('invalid_input', 'grantRole', { body: { ...holder, role: 'caller' } });
    await fails('not_found', 'grantRole', { body: { group: 'nobodies', role: 'caller' } });
    const { body: grants } = await gets(200, 'listGrants', { query: '?project=default' });
    expect(grants).toEqual({ grants: [grant] });
    await fails('unknown_project', 'listGrants', { query: '?project=nowhere' });
    await gets(204, 'revokeGrant', { at: { grant: String(grant.id) } });
    await fails('not_found', 'revokeGrant', { at: { grant: String(grant.id) } });
    await gets(204, 'leaveGroup', { at });
    await fails('not_found', 'leaveGroup', { at: { ...at, group: 'nobodies' } });
    await gets(204, 'removeGroup', { at });
    await fails('not_found', 'removeGroup', { at });
  });

  it('matches the responses about rules and limits', async () => {
    const { headers, body: rule } = await gets(201, 'createRule', {
      body: { effect: 'deny', subject: { principal: 'ci' }, kind: 'tool', server: 'box', destructive: true },
    });
    expect(headers.location).toBe(`/api/v1/rules/${rule.id}`);
    expect(rule).toMatchObject({
      ...{ text: 'deny principal ci tool box/* destructive', project: null, subject: { name: 'ci' } },
      ...{ server: 'box', name: '*', read_only: null, destructive: true },
    });
    const { body: ofRole } = await gets(201, 'createRule', {
      body: { effect: 'deny', project: 'default', subject: { role: 'viewer' }, name: 'echo' },
    });
    for (const wrong of [
      { effect: 'deny', subject: 'all' },
      { effect: 'deny', subject: { role: 'viewer', group: 'x' } },
      { effect: 'deny', name: 'x'.repeat(501) },
      { effect: 'deny', name: '*'.repeat(11) },
    ])
      await fails('invalid_input', 'createRule', { body: wrong });
    await fails('not_found', 'createRule', { body: { effect: 'deny', subject: { principal: 'nobody' } } });
    const { body: rules } = await gets(200, 'listRules');
    expect(rules).toEqual({ rules: [rule, ofRole] });
    expect((await gets(200, 'listRules', { query: '?project=default' })).body).toEqual({ rules: [ofRole] });
    await fails('unknown_project', 'listRules', { query: '?project=nowhere' });

    const { body: limit } = await gets(201, 'createLimit', {
      body: { principal: 'ci', project: 'default', tool: 'echo', concurrent: 2 },
    });
    expect(limit).toMatchObject({
      principal: { name: 'ci' },
      per_minute: null,
      concurrent: 2,
      shared: false,
    });
    await fails('invalid_input', 'createLimit', { body: { principal: 'ci' } });
    await fails('invalid_input', 'createLimit', { body: { per_minute: 0 } });
    expect((await gets(200, 'listLimits')).body).toEqual({ limits: [limit] });
    await fails('invalid_input', 'listLimits', { query: '?x' });
    await gets(204, 'removeLimit', { at: { limit: String(limit.id) } });
    await fails('not_found', 'removeLimit', { at: { limit: String(limit.id) } });

    const can = async (query: object) =>
      (await gets(200, 'can', { query: `?${new URLSearchParams({ ...query })}` })).body;
    expect(await can({ action: 'administer' })).toEqual({
      ...{ allowed: true, action: 'administer', role: 'admin', rule: null },
      reason: 'local user has the role admin in all projects.',
    });
    const denied = { allowed: false, role: 'operator', rule: { id: rule.id, text: rule.text } };
    const ci = { principal: 'ci', project: 'default' };
    expect(await can({ ...ci, name: 'echo' })).toMatchObject(denied);
    expect(await can({ ...ci, name: 'box__echo' })).toMatchObject(denied);
    expect(await can({ ...ci, name: 'echo', server: 'box' })).toMatchObject(denied);
    expect(await can({ ...ci, name: 'nothing' })).toMatchObject({ allowed: false, rule: null });
    expect(await can({ ...ci, action: 'manage' })).toMatchObject({
      reason: 'This needs the role owner; ci has the role operator in project "default".',
    });
    await fails('invalid_input', 'can', { query: '?action=manage&name=echo' });
    await fails('not_found', 'can', { query: '?principal=nobody' });
    for (const { id } of [rule, ofRole]) await gets(204, 'removeRule', { at: { rule: String(id) } });
    await fails('not_found', 'removeRule', { at: { rule: String(rule.id) } });
  });

  it('matches the responses about the audit log', async () => {
    const { body: first } = await gets(200, 'listAudit', { query: '?action=key&limit=2' });
    expect(first.entries).toMatchObject([
      { action: 'key.revoke', actor: { kind: 'local' }, outcome: 'done', subject: 'cd', after: null },
      { action: 'key.rotate', project: { name: 'default' } },
    ]);
    const next = `?action=key&cursor=${first.next_cursor}`;
    expect((await gets(200, 'listAudit', { query: next })).body.next_cursor).toBe(null);
    expect((await gets(200, 'listAudit', { query: '?principal=ci' })).body.entries).toEqual([]);
    await fails('invalid_input', 'listAudit', { query: '?outcome=maybe' });
    const { body: check } = await gets(200, 'verifyAudit');
    expect(check).toMatchObject({ first_seq: 1, problem: null });
    await fails('invalid_input', 'verifyAudit', { query: '?x' });

    const lines = async (request: { query?: string; accept?: string }) => {
      const { accept } = request;
      const answer = await exchange(contract.urlOf('listAudit', request), {
        method: 'GET',
        ...(accept === undefined ? {} : { headers: { accept } }),
      });
      expect(answer.headers['content-type']).toBe('application/jsonl');
      return answer.text.split('\n').slice(0, -1);
    };
    const exported = await lines({ accept: 'application/jsonl' });
    expect(exported.length).toBe(check.entries);
    for (const line of exported) contract.checkValue('AuditEntry', JSON.parse(line));
    expect(JSON.parse(exported.at(-1)!)).toMatchObject({ seq: check.last_seq, hash: check.head });
    expect((await lines({ query: '?format=jsonl&action=rule.create' })).length).toBe(2);
    await gets(204, 'revokeKey', { at: { key: 'ci' } });
  });

  it('matches the responses to rejected requests', async () => {
    const url = contract.urlOf('createProject');
    const send = async (path: string, request: object) => {
      const { status, headers, json } = await exchange(path, request);
      contract.checkValue('Failure', json);
      return { status, allow: headers.allow };
    };
    expect(await send(`${url}/default/nowhere`, { method: 'GET' })).toMatchObject({ status: 404 });
    expect(await send(url, { method: 'PUT', body: {} })).toEqual({ status: 405, allow: 'GET, HEAD, POST' });
    const type = { 'content-type': 'text/plain' };
    expect(await send(url, { headers: type, body: '{}' })).toMatchObject({ status: 415 });
    const large = JSON.stringify({ name: 'x', description: 'x'.repeat(5 * 1024 * 1024) });
    const json = { 'content-type': 'application/json' };
    expect(await send(url, { headers: json, body: large })).toMatchObject({ status: 413 });
    expect(await send(url, { headers: json, body: '{"name": "x",}' })).toMatchObject({ status: 400 });
  });

  it('has no response that these tests leave unchecked', () => {
    expect(contract.promised.filter((answer) => !contract.seen.has(answer))).toEqual([]);
    const failures = contract.promised.map((answer) => `${answer.split(' ')[0]} failure`);
    expect(failures.filter((answer) => !contract.seen.has(answer))).toEqual([]);
  });
});

it('matches the responses without a database', async () => {
  await using switchboard = await startSwitchboard({ box });
  const contract = await Contract.read(`${switchboard.baseUrl}/api/v1`);
  const { body } = await contract.ask('getStatus');
  expect(body.database).toEqual({ mode: 'none', connected: false, error: null });
  for (const operation of ['listProjects', 'getProject', 'listServers', 'listTools', 'whoami', 'can']) {
    expect((await contract.ask(operation)).status, operation).toBe(200);
  }
  const refused: [string, object][] = [
    ['createProject', { body: { name: 'web' } }],
    ['changeProject', { body: { description: 'x' } }],
    ['createServer', { body: stdio }],
    ['changeServer', { at: { name: 'box' }, body: { enabled: false } }],
    ['switchTool', { at: { tool: 'box__echo' }, body: { enabled: false } }],
    ['listSecrets', {}],
    ['putSecret', { at: { secret: 'TOKEN' }, body: { value: 'x' } }],
    ['removeSecret', { at: { secret: 'TOKEN' } }],
    ['rotateSecrets', {}],
    ['listProducts', {}],
    ['installProduct', { body: manifest('1', 'one') }],
    ['removeProduct', { at: { product: 'kit' } }],
    ['listCalls', {}],
    ['importServers', { body: { mcpServers: { one: missing.config } } }],
    ['listHosted', {}],
    ['createHosted', { body: { name: 'hosted', image: 'mcp/time' } }],
    ['getHosted', { at: { id: 'hosted' } }],
    ['callHosted', { at: { id: 'hosted' }, body: { method: 'ping' } }],
    ['chat', { body: { input: 'Hello?' } }],
    ['listRuns', {}],
    ['getRun', { at: { run: 'nothing' } }],
    ['listKeys', {}],
    ['createKey', { body: { name: 'ci', role: 'viewer' } }],
    ['getKey', { at: { key: 'ci' } }],
    ['listGroups', {}],
    ['grantRole', { body: { principal: 'ci', role: 'viewer' } }],
    ['listRules', {}],
    ['createLimit', { body: { per_minute: 1 } }],
    ['can', { query: '?principal=ci' }],
    ['listAudit', {}],
    ['verifyAudit', {}],
  ];
  for (const [operation, question] of refused) {
    const answer = await contract.ask(operation, question);
    expect([operation, answer.status, answer.body]).toMatchObject([
      operation,
      503,
      { error: { code: 'no_database' } },
    ]);
  }
});

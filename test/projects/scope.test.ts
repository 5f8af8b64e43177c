import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { Notification } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { textOf } from '../helpers/clients.ts';
import { Inbox } from '../helpers/inbox.ts';
import { bothTypes, exchange, initialize, RawSession, type RpcMessage } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { databases, Site, type TestProject } from './site.ts';
import { type Listed, TestClient } from './test-client.ts';

const PROJECT = 'dev.switchboard/project';
const UPDATED = 'notifications/resources/updated';
const HEADER = 'x-project-id';

type Ask = (method: string, params?: Record<string, unknown>) => Promise<RpcMessage>;

/** The ways to name the project of a request. */
const ways: Record<string, (base: string, project: string) => Promise<Ask>> = {
  async path(base, project) {
    const session = await RawSession.open(`${base}/mcp/${project}`);
    return (method, params) => session.request(method, params);
  },
  async header(base, project) {
    const session = await RawSession.open(`${base}/mcp`);
    let id = 0;
    return async (method, params = {}) => {
      const answer = await session.post({ jsonrpc: '2.0', id: ++id, method, params }, { [HEADER]: project });
      return answer.json!;
    };
  },
  async _meta(base, project) {
    const session = await RawSession.open(`${base}/mcp`);
    return (method, params = {}) => session.request(method, { ...params, _meta: { projectId: project } });
  },
};

const kinds = { tools: 'tools', resources: 'resources', prompts: 'prompts' } as const;

async function listsOf(ask: Ask): Promise<Listed[]> {
  const lists = [];
  for (const kind of Object.values(kinds)) lists.push((await ask(`${kind}/list`)).result![kind]);
  lists.push((await ask('resources/templates/list')).result!.resourceTemplates);
  return lists.flat() as Listed[];
}

/** The text of any kind of result. */
function textIn({ result, error }: RpcMessage): string {
  return error?.message ?? JSON.stringify(result);
}

/** An SDK client that names its project in a header of every request. */
async function connectWithHeader(url: string, project: string) {
  const options = { requestInit: { headers: { [HEADER]: project } } };
  const transport = url.endsWith('/sse')
    ? new SSEClientTransport(new URL(url), options)
    : new StreamableHTTPClientTransport(new URL(url), options);
  const client = new Client({ name: 'scoped', version: '1' });
  const notifications = new Inbox<Notification>();
  client.fallbackNotificationHandler = async (notification) => notifications.add(notification);
  await client.connect(transport as Transport);
  onTestFinished(() => client.close());
  return { client, notifications };
}

describe.each(databases)('the project of a request (%s database)', (kind) => {
  let site: Site;
  let alpha: TestProject;
  let beta: TestProject;
  const everything = () => TestClient.open(`${site.baseUrl}/mcp`);
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    exchange(site.baseUrl + path, {
      headers: { 'content-type': 'application/json', accept: bothTypes, ...headers },
      body,
    });

  setUp(async (use) => {
    site = use(await Site.start(kind, { mcpServers: { own: fixtureServer('toolbox') } }));
    alpha = await site.createProject('alpha');
    beta = await site.createProject('beta');
    for (const project of [alpha, beta]) {
      await project.add('notes', { fixture: 'notes', env: { NOTES_OF: project.name } });
      await project.add('box', { env: { PROJECT: project.name } });
    }
    // Discovers every server once.
    await (await everything()).tools();
  });

  describe.each(Object.entries(ways))('in its %s', (way, scoped) => {
    it.each(['name', 'id'] as const)('limits every list to the project of that %s [A8]', async (key) => {
      for (const project of [alpha, beta]) {
        const listed = await listsOf(await scoped(site.baseUrl, project[key]));
        expect(new Set(listed.map(({ _meta }) => _meta[PROJECT]))).toEqual(new Set([project.name]));
        // Without other projects, names and URIs are unqualified.
        const names = listed.map(({ name, uri, uriTemplate }) => uri ?? uriTemplate ?? name);
        expect(names).toContain('touch');
        expect(names).toContain('environment');
        expect(names).toContain('summarize');
        expect(names).toContain(`resource://notes/note://only/${project.name}`);
        expect(names).toContain(`resource://notes/note://day/${project.name}/{day}`);
        expect(new Set(names).size).toBe(names.length);
      }
    });

    it('limits calls, reads, prompts and completion to the project [A8]', async () => {
      for (const project of [alpha, beta]) {
        const ask = await scoped(site.baseUrl, project.name);
        const answers = await Promise.all([
          ask('tools/call', { name: 'environment', arguments: { name: 'PROJECT' } }),
          ask('tools/call', { name: 'box__environment', arguments: { name: 'PROJECT' } }),
          ask('resources/read', { uri: 'resource://notes/note://todo' }),
          ask('resources/read', { uri: 'note://todo' }),
          ask('prompts/get', { name: 'summarize' }),
          ask('completion/complete', {
            ref: { type: 'ref/prompt', name: 'summarize' },
            argument: { name: 'a', value: 'b' },
          }),
          ask('completion/complete', {
            ref: { type: 'ref/resource', uri: `resource://notes/note://day/${project.name}/{day}` },
            argument: { name: 'day', value: 'b' },
          }),
        ]);
        const other = project === alpha ? 'beta' : 'alpha';
        for (const answer of answers) {
          expect(answer.error).toBeUndefined();
          expect(textIn(answer)).toContain(project.name);
          expect(textIn(answer)).not.toContain(other);
        }
      }
    });

    it('hides what another project has, as if it did not exist [A8]', async () => {
      const ask = await scoped(site.baseUrl, 'alpha');
      const requests: [method: string, params: (name: string) => Record<string, unknown>, theirs: string][] =
        [
          ['tools/call', (name) => ({ name, arguments: {} }), 'beta__box__echo'],
          ['tools/call', (name) => ({ name, arguments: {} }), 'only_in_beta'],
          ['prompts/get', (name) => ({ name }), 'beta__notes__summarize'],
          ['resources/read', (uri) => ({ uri }), 'resource://beta%2Fnotes/note://todo'],
          ['resources/read', (uri) => ({ uri }), 'note://only/beta'],
          ['resources/subscribe', (uri) => ({ uri }), 'note://only/beta'],
          [
            'completion/complete',
            (name) => ({ ref: { type: 'ref/prompt', name }, argument: { name: 'a', value: 'b' } }),
            'beta__notes__summarize',
          ],
        ];
      const inBeta = await beta.session();
      await inBeta.callText('add', { name: 'only_in_beta' });
      const client = await everything();
      await client.toolsOnce((names) => names.includes('only_in_beta'));

      const alike = ({ error, result }: RpcMessage, name: string) => {
        expect(result).toBeUndefined();
        return JSON.parse(JSON.stringify(error).replaceAll(name, 'it')) as unknown;
      };
      for (const [method, params, theirs] of requests) {
        // The error may suggest similar names of the own project.
        const missing = theirs.includes('__') ? theirs.replace('beta', 'gamma') : 'nobody_has_this';
        const refused = alike(await ask(method, params(theirs)), theirs);
        expect(refused).toEqual(alike(await ask(method, params(missing)), missing));
      }
    });

    it('must exist, or the error says that it does not [A8]', async () => {
      const message = 'There is no project "nowhere".';
      if (way === 'path') {
        await expect(scoped(site.baseUrl, 'nowhere')).rejects.toThrow(message.replaceAll('"', '\\"'));
        return;
      }
      const ask = await scoped(site.baseUrl, 'nowhere');
      for (const method of ['tools/list', 'resources/list', 'prompts/list', 'resources/templates/list']) {
        expect(await ask(method)).toMatchObject({
          error: { code: -32602, message, data: { code: 'unknown_project', project: 'nowhere' } },
        });
      }
      for (const [method, params] of [
        ['tools/call', { name: 'own__echo', arguments: {} }],
        ['resources/read', { uri: 'resource://alpha%2Fnotes/note://todo' }],
        ['resources/subscribe', { uri: 'resource://alpha%2Fnotes/note://todo' }],
        ['prompts/get', { name: 'alpha__notes__summarize' }],
      ] as const) {
        expect((await ask(method, params)).error).toMatchObject({ message });
      }
    });
  });

  describe('that is set when the session is opened', () => {
    it.each([
      ['path', '/mcp/nowhere', {}, undefined],
      ['header', '/mcp', { [HEADER]: 'nowhere' }, undefined],
      ['_meta', '/mcp', {}, 'nowhere'],
    ] as const)('must exist: %s [A8]', async (_way, path, headers, projectId) => {
      const request = initialize() as { params: object };
      const params = projectId === undefined ? request.params : { ...request.params, _meta: { projectId } };
      const { status, json } = await post(path, { ...request, params }, headers);
      expect(status).toBe(404);
      expect(json?.error).toMatchObject({
        code: -32602,
        message: 'There is no project "nowhere".',
        data: { code: 'unknown_project', project: 'nowhere' },
      });
    });

    it('applies to the whole session [A8]', async () => {
      const request = initialize() as { params: object };
      const withMeta = (_meta: object) => ({ ...request, params: { ...request.params, _meta } });
      for (const [body, headers] of [
        [request, { [HEADER]: 'alpha' }],
        [withMeta({ projectId: 'alpha' }), {}],
        [withMeta({ project_id: 'alpha' }), {}],
      ] as const) {
        const opened = await post('/mcp', body, headers);
        const session = { 'mcp-session-id': String(opened.headers['mcp-session-id']) };
        const list = await post('/mcp', { jsonrpc: '2.0', id: 2, method: 'tools/list' }, session);
        const tools = list.json!.result!.tools as Listed[];
        expect(new Set(tools.map(({ _meta }) => _meta[PROJECT]))).toEqual(new Set(['alpha']));
        expect(tools.map(({ name }) => name)).toContain('touch');
      }
    });

    it('applies to an SDK client that sends the header [A8]', async () => {
      const { client, notifications } = await connectWithHeader(`${site.baseUrl}/mcp`, 'beta');
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain('environment');
      expect(textOf(await client.callTool({ name: 'environment', arguments: { name: 'PROJECT' } }))).toBe(
        'beta',
      );
      const announced = notifications.next(({ method }) => method === 'notifications/tools/list_changed');
      await client.callTool({ name: 'add', arguments: { name: 'added_over_http' } });
      await announced;
    });

    it('applies to HTTP+SSE, where the header comes with the stream [A8]', async () => {
      const { client, notifications } = await connectWithHeader(`${site.baseUrl}/sse`, alpha.id);
      const { tools } = await client.listTools();
      expect(new Set(tools.map(({ _meta }) => _meta?.[PROJECT]))).toEqual(new Set(['alpha']));
      expect(textOf(await client.callTool({ name: 'environment', arguments: { name: 'PROJECT' } }))).toBe(
        'alpha',
      );
      await client.subscribeResource({ uri: 'resource://notes/note://done' });
      await client.callTool({ name: 'touch', arguments: { uri: 'note://done' } });
      const { params } = await notifications.first(({ method }) => method === UPDATED);
      expect(params).toEqual({ uri: 'resource://notes/note://done' });
      await expect(connectWithHeader(`${site.baseUrl}/sse`, 'nowhere')).rejects.toThrow(
        'There is no project "nowhere".',
      );
    });
  });

  describe('that is named twice', () => {
    const listTools = (projectId?: string) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/list',
      params: projectId === undefined ? {} : { _meta: { projectId } },
    });
    const several = { data: { code: 'invalid_request' }, message: expect.stringContaining('several') };

    it('may be the same one by id and by name', async () => {
      const session = await alpha.session();
      const { json } = await session.post(listTools(alpha.id), { [HEADER]: 'alpha' });
      expect(json).toMatchObject({ result: { tools: expect.any(Array) } });
      const opened = await post(`/mcp/${alpha.id}`, initialize(), { [HEADER]: 'alpha' });
      expect(opened.status).toBe(200);
    });

    it('must not be two different ones', async () => {
      const opened = await post('/mcp/alpha', initialize(), { [HEADER]: 'beta' });
      expect(opened.status).toBe(400);
      expect(opened.json?.error).toMatchObject(several);
      expect(opened.json?.error?.message).toContain('"alpha" and "beta"');

      const inAlpha = await alpha.session();
      expect((await inAlpha.post(listTools('beta'))).json?.error).toMatchObject(several);
      const elsewhere = await inAlpha.post(listTools(), { [HEADER]: 'beta' });
      expect(elsewhere.status).toBe(404);
      expect(elsewhere.json?.error).toBeDefined();

      const session = await RawSession.open(`${site.baseUrl}/mcp`);
      expect((await session.post(listTools('beta'), { [HEADER]: 'alpha' })).json?.error).toMatchObject(
        several,
      );
    });

    it('does not give access to the session of another project', async () => {
      const inAlpha = await alpha.session();
      const stolen = await exchange(beta.url, { headers: inAlpha.headers(), body: listTools() });
      expect(stolen.status).toBe(404);
      expect(stolen.text).not.toContain('touch');
      const ended = await exchange(beta.url, { method: 'DELETE', headers: inAlpha.headers() });
      expect(ended.status).toBe(404);
      expect((await inAlpha.toolNames()).length).toBeGreaterThan(0);
    });

    it('must be a string', async () => {
      const session = await RawSession.open(`${site.baseUrl}/mcp`);
      for (const projectId of [7, null, { name: 'alpha' }]) {
        const params = { _meta: { projectId } };
        const answer = await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list', params });
        expect(answer.json?.error).toMatchObject({ code: -32600 });
      }
    });
  });

  describe('that is not named', () => {
    it('shows everything that is enabled, under unique names, with its project [A9]', async () => {
      const hidden = await site.project();
      await hidden.add('off', { enabled: false });
      const client = await everything();
      const tools = await client.list('tools');
      const names = tools.map(({ name }) => name);
      expect(new Set(names).size).toBe(names.length);
      expect(names).toContain('alpha__notes__touch');
      expect(names).toContain('beta__notes__touch');
      expect(names).toContain('own__echo');
      expect(names.filter((name) => name.includes('off'))).toEqual([]);
      const projectOf = (name: string) => tools.find((tool) => tool.name === name)?._meta[PROJECT];
      expect(projectOf('alpha__box__echo')).toBe('alpha');
      expect(projectOf('beta__box__echo')).toBe('beta');
      expect(projectOf('own__echo')).toBeUndefined();

      const uris = (await client.list('resources')).map(({ uri }) => uri);
      expect(new Set(uris).size).toBe(uris.length);
      expect(uris).toContain('resource://alpha%2Fnotes/note://todo');
      expect(uris).toContain('resource://beta%2Fnotes/note://todo');
      expect((await client.list('prompts')).map(({ name, _meta }) => [name, _meta[PROJECT]])).toEqual([
        ['alpha__notes__summarize', 'alpha'],
        ['beta__notes__summarize', 'beta'],
      ]);
      expect((await client.list('resourceTemplates')).map(({ uriTemplate }) => uriTemplate)).toEqual([
        'resource://alpha%2Fnotes/note://day/alpha/{day}',
        'resource://beta%2Fnotes/note://day/beta/{day}',
      ]);
    });

    it('allows calls, reads and requests under these names [A9]', async () => {
      const { session } = await everything();
      for (const name of ['alpha', 'beta']) {
        expect(await session.callText(`${name}__box__environment`, { name: 'PROJECT' })).toBe(name);
        const place = `resource://${name}%2Fnotes`;
        for (const own of ['note://todo', `note://day/${name}/monday`]) {
          const read = await session.request('resources/read', { uri: `${place}/${own}` });
          expect(read.result?.contents).toMatchObject([
            { uri: `${place}/${own}`, text: `${own} of ${name}` },
          ]);
        }
        expect(textIn(await session.request('prompts/get', { name: `${name}__notes__summarize` }))).toContain(
          `Notes of ${name}`,
        );
        const { result } = await session.call(`${name}__notes__refer`, { uri: 'note://todo' });
        expect(result?.content).toMatchObject([
          { uri: `${place}/note://todo` },
          { resource: { uri: `${place}/note://todo` } },
          { text: 'not a reference: note://todo' },
        ]);
        const only = await session.request('resources/read', { uri: `note://only/${name}` });
        expect(textIn(only)).toContain(`of ${name}`);
      }
      // Two projects have it, so the plain URI matches neither.
      expect((await session.request('resources/read', { uri: 'note://todo' })).error).toMatchObject({
        message: 'Unknown resource: note://todo',
      });
    });

    it('keeps the plain name of a tool that only one project has [A9]', async () => {
      const project = await site.project();
      const client = await everything();
      const added = () => project.add('growing', { fixture: 'grows-lists' });
      await client.toolsAfter(added, (names) => names.includes('grow'));
      expect(await client.session.callText('grow', { name: 'more', kinds: [] })).toBe('grown by more');
      expect(await client.session.callText(`${project.name}__growing__grow`, { name: 'x', kinds: [] })).toBe(
        'grown by x',
      );
    });
  });

  describe('limits notifications:', () => {
    it('updates of subscribed resources [A8]', async () => {
      const [inAlpha, inBeta, ofAll] = await Promise.all([alpha.client(), beta.client(), everything()]);
      const subscribe = async ({ session }: TestClient, uri: string) =>
        expect(await session.request('resources/subscribe', { uri })).toMatchObject({ result: {} });
      for (const client of [inAlpha, inBeta]) await subscribe(client, 'resource://notes/note://todo');
      for (const name of ['alpha', 'beta']) await subscribe(ofAll, `resource://${name}%2Fnotes/note://todo`);

      // Updates come in order, so an update of beta proves that no earlier one of alpha is pending.
      const uri = 'note://todo';
      await inAlpha.session.call('touch', { uri });
      await inAlpha.session.call('touch', { uri });
      await inBeta.session.call('touch', { uri });
      const updates = (client: TestClient) => client.told(UPDATED).map(({ params }) => params?.uri);
      const updated = (client: TestClient, count: number) =>
        client.stream.events.several(count, ({ message }) => message?.method === UPDATED);
      await Promise.all([updated(inAlpha, 2), updated(inBeta, 1), updated(ofAll, 3)]);
      expect(updates(inAlpha)).toHaveLength(2);
      expect(updates(inBeta)).toHaveLength(1);
      expect(updates(ofAll)).toEqual([
        'resource://alpha%2Fnotes/note://todo',
        'resource://alpha%2Fnotes/note://todo',
        'resource://beta%2Fnotes/note://todo',
      ]);
    });

    it('updates of one URI that a client subscribes to in two projects [A8]', async () => {
      const client = await everything();
      const [inAlpha, inBeta] = [await alpha.session(), await beta.session()];
      const uri = 'resource://notes/note://done';
      const last = 'resource://alpha%2Fnotes/note://todo';
      const ask = async (method: string, params: object) =>
        expect(await client.session.request(`resources/${method}`, params)).toMatchObject({ result: {} });
      /** A server responds after it has sent the update, so updates that are missing by then never come. */
      const updates = async () => {
        const before = client.told(UPDATED).length;
        const arrived = client.stream.events.next(({ message }) => message?.params?.uri === last);
        await inBeta.call('touch', { uri: 'note://done' });
        await inAlpha.call('touch', { uri: 'note://done' });
        await inAlpha.call('touch', { uri: 'note://todo' });
        await arrived;
        return client
          .told(UPDATED)
          .slice(before)
          .map(({ params }) => params?.uri);
      };
      await ask('subscribe', { uri: last });
      for (const projectId of ['alpha', 'beta']) await ask('subscribe', { uri, _meta: { projectId } });
      expect(await updates()).toEqual([uri, uri, last]);
      await ask('unsubscribe', { uri, _meta: { projectId: 'beta' } });
      expect(await updates()).toEqual([uri, last]);
      await ask('unsubscribe', { uri, _meta: { projectId: 'alpha' } });
      expect(await updates()).toEqual([last]);
    });

    it('list changes [A8]', async () => {
      const clients = await Promise.all([alpha.client(), beta.client(), everything()]);
      const [inAlpha, inBeta, ofAll] = clients;
      for (const client of clients) await client.tools();
      const changes = ({ stream }: TestClient) =>
        stream.messages.filter(({ method }) => method === 'notifications/tools/list_changed').length;
      const before = changes(inBeta);
      for (const name of ['alpha_grew', 'alpha_grew_again']) {
        const announcements = [inAlpha.announced('tools'), ofAll.announced('tools')];
        await inAlpha.session.callText('add', { name });
        await Promise.all(announcements);
      }
      const announcements = [inBeta.announced('tools'), ofAll.announced('tools')];
      await inBeta.session.callText('add', { name: 'beta_grew' });
      await Promise.all(announcements);
      expect(changes(inBeta)).toBe(before + 1);
      expect(await inAlpha.tools()).toContain('alpha_grew_again');
      expect(await inBeta.tools()).not.toContain('alpha_grew');
    });

    it('servers that appear and disappear [A8]', async () => {
      const [one, other] = [await site.project(), await site.project()];
      const [inOne, inOther, ofAll] = await Promise.all([one.client(), other.client(), everything()]);
      for (const name of ['first', 'second']) {
        const announcements = [inOne.announced('tools'), ofAll.announced('tools')];
        await one.add(name, { fixture: 'grows-lists' });
        await Promise.all(announcements);
      }
      const nothing = { transport: 'stdio', config: { command: '/no/such/program' } };
      await inOther.toolsAfter(() => other.done('POST /servers', { name: 'nothing', ...nothing }));
      expect(inOther.told('notifications/tools/list_changed')).toHaveLength(1);
    });

    it('log lines and broadcasts of servers [A8]', async () => {
      const [one, other] = [await site.project(), await site.project()];
      for (const project of [one, other]) await project.add('musing', { fixture: 'notifies-unprompted' });
      const clients = await Promise.all([one.client(), other.client(), everything()]);
      const [inOne, inOther, ofAll] = clients;
      for (const client of clients) await client.tools();
      const think = async (project: TestProject, thought: string, listeners: TestClient[]) => {
        const heard = listeners.map((client) => client.announced('prompts'));
        site.witness.tell(project.who('musing'), thought);
        await Promise.all(heard);
      };
      const thoughts = (client: TestClient) =>
        ['notifications/message', 'notifications/thought'].map((method) =>
          client.told(method).map(({ params }) => params?.data),
        );
      await think(one, 'first thought', [inOne, ofAll]);
      await think(other, 'second thought', [inOther, ofAll]);
      expect(thoughts(inOne)).toEqual([['first thought'], ['first thought']]);
      expect(thoughts(inOther)).toEqual([['second thought'], ['second thought']]);
      expect(thoughts(ofAll)).toEqual([
        ['first thought', 'second thought'],
        ['first thought', 'second thought'],
      ]);
    });

    it('log levels [A8]', async () => {
      const [one, other] = [await site.project(), await site.project()];
      for (const project of [one, other]) await project.add('box');
      const [inOne, inOther] = [await one.client(), await other.client()];
      for (const client of [inOne, inOther]) await client.tools();
      await inOne.session.request('logging/setLevel', { level: 'error' });
      await inOther.session.request('logging/setLevel', { level: 'debug' });
      const levelOf = async (project: TestProject) =>
        (await site.witness.sees(project.who('box'), 'logging/setLevel')).params;
      expect(await levelOf(one)).toEqual({ level: 'error' });
      expect(await levelOf(other)).toEqual({ level: 'debug' });
    });
  });

  describe('that is renamed or removed while clients are connected', () => {
    it('keeps its id, and is known only by its new name', async () => {
      const project = await site.project();
      await project.add('box');
      const byName = await project.client();
      const byId = await TestClient.open(`${site.baseUrl}/mcp/${project.id}`);
      const ofAll = await everything();
      await byName.tools();
      const pid = await byId.session.callText('pid');
      const renamed = `${project.name}-renamed`;
      const names = await ofAll.toolsAfter(
        () => site.done(`PATCH /projects/${project.name}`, { name: renamed }),
        (listed) => listed.includes(`${renamed}__box__pid`),
      );
      expect(names.filter((name) => name.startsWith(`${project.name}__`))).toEqual([]);
      expect(await byId.session.callText('pid')).toBe(pid);
      expect((await byId.list('tools'))[0]?._meta[PROJECT]).toBe(renamed);
      expect(await (await RawSession.open(`${site.baseUrl}/mcp/${renamed}`)).callText('pid')).toBe(pid);

      // Clients that use the old name must open a new session, which then fails with the reason.
      const refused = await byName.session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
      expect(refused.status).toBe(404);
      await expect(project.session()).rejects.toThrow('There is no project');
      expect((await site.ask(`GET /projects/${project.name}/servers`)).body.error).toMatchObject({
        code: 'unknown_project',
      });
      expect(await site.done(`GET /projects/${project.id}`)).toMatchObject({ name: renamed });
    });

    it('and created again, allows new subscriptions to its resources', async () => {
      const client = await everything();
      const name = 'made-anew';
      const uri = `resource://${name}%2Fnotes/note://todo`;
      for (const time of ['first', 'second']) {
        const project = await site.createProject(name);
        onTestFinished(async () => void (await site.ask(`DELETE /projects/${project.id}`)));
        await client.toolsAfter(
          () => project.add('notes', { fixture: 'notes', who: time }),
          (names) => names.includes(`${name}__notes__touch`),
        );
        expect(await client.session.request('resources/subscribe', { uri })).toMatchObject({ result: {} });
        const updated = client.stream.events.next(({ message }) => message?.method === UPDATED);
        await client.session.call(`${name}__notes__touch`, { uri: 'note://todo' });
        expect((await updated).message?.params).toEqual({ uri });
        await client.toolsAfter(() => site.done(`DELETE /projects/${name}`));
        await site.witness.sees(time, 'end');
      }
    });

    it('frees its old name for another project', async () => {
      const project = await site.project();
      await project.add('box');
      const renamed = `${project.name}-before`;
      await site.done(`PATCH /projects/${project.id}`, { name: renamed });
      const second = await site.createProject(project.name);
      onTestFinished(() => site.done(`DELETE /projects/${second.id}`).then(() => {}));
      const session = await second.session();
      expect(await session.toolNames()).toEqual([]);
      expect((await site.ask(`PATCH /projects/${renamed}`, { name: second.name })).body.error).toMatchObject({
        code: 'conflict',
      });
    });
  });
});

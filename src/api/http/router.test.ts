import { once } from 'node:events';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startForTests } from '../../../test/helpers/api-client.ts';
import { exchange, openExchange } from '../../../test/helpers/raw-http.ts';
import { fixtureServer } from '../../../test/helpers/switchboard.ts';
import { SwitchboardError } from '../../errors.ts';

const { command, args } = fixtureServer('toolbox');
const server = { name: 'github', transport: 'stdio', config: { command, args } };
const { services, serve, newName } = await startForTests();

function failStatus(status: () => never): void {
  const spy = vi.spyOn(services, 'status').mockImplementation(status);
  onTestFinished(() => spy.mockRestore());
}

describe('paths', () => {
  it.each([
    '/api/v2/projects',
    '/api/',
    '/api/v1',
    '/api/v1/',
    '/projects/',
    '/projects//servers',
    '/projects/%E0%A4%A',
    '/projects/%00',
    '/projects/default/nothing',
    '/projects/default/servers/a/b',
  ])('%s is not found', async (path) => {
    const { ask } = await serve();
    const { status, error } = await ask(`GET ${path}`);
    expect({ status, code: error.code }).toEqual({ status: 404, code: 'not_found' });
  });

  it('lists the methods that a path allows', async () => {
    const { ask } = await serve();
    const answers = [await ask('PUT /projects'), await ask('OPTIONS /projects/default')];
    expect(answers.map(({ status }) => status)).toEqual([405, 405]);
    expect(answers.map(({ headers }) => headers.allow)).toEqual([
      'GET, HEAD, POST',
      'GET, HEAD, PATCH, DELETE',
    ]);
  });

  it('accepts names with any characters', async () => {
    const { ask } = await serve();
    const name = 'a b%?#ü.."\\😀';
    const { status, headers } = await ask('POST /projects/default/servers', { ...server, name });
    expect(status).toBe(201);
    expect(headers.location).toBe(`/api/v1/projects/default/servers/${encodeURIComponent(name)}`);
    const { body } = await ask(`GET ${headers.location}`);
    expect(body).toMatchObject({ name });
    expect((await ask(`DELETE ${headers.location}`)).status).toBe(204);
  });

  it('responds to HEAD as to GET, without the body', async () => {
    const { url } = await serve();
    const get = await exchange(url('/projects/default'), { method: 'GET' });
    const head = await openExchange(url('/projects/default'), { method: 'HEAD' });
    const { date: _date, ...headers } = get.headers;
    expect(head.headers).toMatchObject(headers);
    expect((await buffer(head)).length).toBe(0);
    expect(headers['content-length']).toBe(String(get.text.length));
    expect(headers['cache-control']).toBe('no-store');
  });
});

describe('a sequence of requests', () => {
  it('creates, reads, changes and removes a project', async () => {
    const { ask } = await serve();
    const created = await ask('POST /projects', { name: 'web', description: 'The site' });
    expect(created).toMatchObject({ status: 201, headers: { etag: '"1"' }, body: { name: 'web' } });
    const read = await ask(`GET ${created.headers.location}`);
    expect(read).toMatchObject({ status: 200, headers: { etag: '"1"' }, body: created.body });
    const changed = await ask('PATCH /projects/web', { retention_days: null });
    expect(changed).toMatchObject({
      headers: { etag: '"2"' },
      body: { retention_days: null, description: 'The site' },
    });
    const { status, headers, body } = await ask('DELETE /projects/web');
    expect({ status, body }).toEqual({ status: 204, body: undefined });
    expect(headers['content-type']).toBe(undefined);
    expect(await ask('GET /projects/web')).toMatchObject({ status: 404, error: { code: 'unknown_project' } });
  });

  it('creates, changes, tests and removes a server', async () => {
    const { newProject } = await serve();
    const { ask } = await newProject(newName());
    const servers = '/servers';
    await ask(`POST ${servers}`, { ...server, replicas: 2, group: 'code', labels: { region: 'eu' } });
    const changed = await ask(`PATCH ${servers}/github`, {
      replicas: null,
      labels: { region: 'us' },
      enabled: false,
    });
    expect(changed.body).toMatchObject({
      replica_count: 1,
      group: 'code',
      labels: { region: 'us' },
      enabled: false,
    });
    expect(await ask(`POST ${servers}/github/test`)).toMatchObject({
      status: 200,
      body: { ok: true, tools: expect.any(Number) },
    });
    const moved = await ask(`PATCH ${servers}/github`, {
      transport: 'http',
      config: { url: 'https://example.test' },
    });
    expect(moved.body).toMatchObject({ transport: 'http', config: { url: 'https://example.test' } });
    expect((await ask(`GET ${servers}/github/logs`)).body).toEqual({ lines: [] });
    expect((await ask(`DELETE ${servers}/github`)).status).toBe(204);
    expect((await ask(`GET ${servers}`)).body).toEqual({ servers: [] });
  });

  it('sets a secret and reports whether it is new', async () => {
    const { ask } = await serve();
    const put = () => ask('PUT /projects/default/secrets/TOKEN', { value: 's3cret' });
    const answers = [await put(), await put()];
    expect(answers.map(({ status }) => status)).toEqual([201, 200]);
    expect(JSON.stringify(answers)).not.toContain('s3cret');
    expect((await ask('POST /secrets/rotate')).body).toEqual({ rotated: 1, key_id: expect.any(String) });
    expect((await ask('DELETE /projects/default/secrets/TOKEN')).status).toBe(204);
    expect((await ask('DELETE /projects/default/secrets/TOKEN')).status).toBe(404);
  });

  it('installs a product and keeps its whole manifest', async () => {
    const { newProject } = await serve();
    const { id, ask } = await newProject(newName());
    const servers = [
      { name: 'one', transport: 'stdio', command: 'a', args: ['b'], env: { C: 'd' }, replicas: 2 },
      { name: 'two', transport: 'http', url: 'https://example.test', headers: { 'x-a': 'b' } },
    ];
    const manifest = { name: 'kit', version: '1.0', mcp: { servers }, agents: [{ id: 7 }] };
    const answers = [await ask('POST /products', manifest), await ask('POST /products', manifest)];
    expect(answers.map(({ status }) => status)).toEqual([201, 200]);
    const [product] = await services.database!.store.products.list(id);
    expect(product!.manifest).toEqual(manifest);
    const rows = services.projects.get(id).listed.map(({ row }) => row);
    expect(rows).toMatchObject([
      {
        name: 'one',
        description: '',
        transport: 'stdio',
        config: { command: 'a', args: ['b'], env: { C: 'd' } },
        settings: { replicas: 2 },
        enabled: true,
      },
      {
        name: 'two',
        description: '',
        transport: 'http',
        config: { url: 'https://example.test', headers: { 'x-a': 'b' } },
        settings: {},
        enabled: true,
      },
    ]);
  });

  it('switches a tool, filters calls, imports an unmodified file and reports the status', async () => {
    const { ask, newProject } = await serve();
    const project = await newProject(newName());
    await project.ask('POST /servers', server);
    const tool = await project.ask('PATCH /tools/github__echo', { enabled: false });
    expect(tool.body).toMatchObject({ name: 'github__echo', enabled: false });
    const list = vi.spyOn(services.database!.store.calls, 'list');
    onTestFinished(() => list.mockRestore());
    await project.ask('GET /calls');
    await project.ask('GET /calls?server=x&status=ok&limit=5&since=2030-01-01T12:00:00%2B02:00');
    expect(list.mock.calls.map(([, filter]) => filter)).toEqual([
      { limit: 50 },
      { limit: 5, server: 'x', status: 'ok', since: new Date('2030-01-01T10:00:00Z') },
    ]);
    const text = '{"mcpServers": {"files": {"command": "a"}}, /* no more */}';
    const imported = await project.ask('POST /import?replace=true', text);
    expect(imported).toMatchObject({ status: 201, body: { imported: ['files'], notes: [] } });
    expect((await ask('GET /status')).body).toMatchObject({ database: { mode: 'server', connected: true } });
  });
});

describe('If-Match', () => {
  it.each([
    ['"1"', 200],
    ['*', 200],
    ['"2"', 412],
    ['1', 400],
    ['W/"1"', 400],
    ['"1", "2"', 400],
    ['"0"', 400],
    ['', 400],
  ])('%s gets the status %d', async (version, status) => {
    const { ask } = await serve();
    const name = newName();
    await ask('POST /projects', { name });
    const changed = await ask(`PATCH /projects/${name}`, { description: 'x' }, { 'if-match': version });
    expect(changed.status).toBe(status);
    if (status === 412) expect(changed.error).toMatchObject({ code: 'version_conflict' });
  });
});

describe('failures', () => {
  it('are shown with their code and details', async () => {
    const { ask } = await serve();
    failStatus(() => {
      throw new SwitchboardError('database_unavailable', 'It is away.', { data: { since: 1 } });
    });
    expect(await ask('GET /status')).toMatchObject({
      status: 503,
      error: { code: 'database_unavailable', message: 'It is away.', details: { since: 1 } },
    });
  });

  it('inside Switchboard are reported as faults and hidden from the client', async () => {
    const onFault = vi.fn();
    const { ask } = await serve(onFault);
    const fault = new TypeError('password=hunter2');
    failStatus(() => {
      throw fault;
    });
    const { status, body } = await ask('GET /status');
    expect({ status, body }).toEqual({
      status: 500,
      body: {
        error: { code: 'internal', message: 'Something went wrong inside Switchboard.', details: {} },
      },
    });
    expect(onFault).toHaveBeenCalledExactlyOnceWith(fault);
  });

  it('are harmless after the client disconnects', async () => {
    const onFault = vi.fn();
    const { ask, peer } = await serve(onFault);
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<never>();
    const list = vi.spyOn(services.database!.store.runs, 'list').mockImplementation(() => {
      asked.resolve();
      return answer.promise;
    });
    onTestFinished(() => list.mockRestore());
    const client = connect(Number(peer.url.port), '127.0.0.1');
    client.write(`GET /api/v1/projects/default/runs HTTP/1.1\r\nhost: ${peer.url.host}\r\n\r\n`);
    const socket = await peer.sockets.first(() => true);
    await asked.promise;
    client.destroy();
    await once(socket, 'close');
    answer.reject(new Error('too late'));
    expect((await ask('GET /projects')).status).toBe(200);
  });

  it('of a truncated body are harmless', async () => {
    const onFault = vi.fn();
    const { ask, peer } = await serve(onFault);
    const client = connect(Number(peer.url.port), '127.0.0.1');
    client.write(
      `POST /api/v1/projects HTTP/1.1\r\nhost: ${peer.url.host}\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{`,
    );
    const socket = await peer.sockets.first(() => true);
    client.destroy();
    await once(socket, 'close');
    expect((await ask('GET /projects/default')).body).toMatchObject({ name: 'default' });
    expect(onFault).not.toHaveBeenCalled();
  });
});

import { once } from 'node:events';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it, vi } from 'vitest';
import { serveApi } from '../../../test/helpers/api-client.ts';
import { exchange, openExchange } from '../../../test/helpers/raw-http.ts';
import { SwitchboardError } from '../../errors.ts';

const server = { name: 'github', transport: 'stdio', config: { command: 'github-mcp' } };

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
  ])('%s is not there', async (path) => {
    const { ask } = await serveApi();
    const { status, error } = await ask(`GET ${path}`);
    expect({ status, code: error.code }).toEqual({ status: 404, code: 'not_found' });
  });

  it('says which methods a path takes', async () => {
    const { ask } = await serveApi();
    const answers = [await ask('PUT /projects'), await ask('OPTIONS /projects/default')];
    expect(answers.map(({ status }) => status)).toEqual([405, 405]);
    expect(answers.map(({ headers }) => headers.allow)).toEqual([
      'GET, HEAD, POST',
      'GET, HEAD, PATCH, DELETE',
    ]);
  });

  it('takes names with any characters in them', async () => {
    const { ask } = await serveApi();
    const name = 'a b%?#ü.."\\😀';
    const { status, headers } = await ask('POST /projects/default/servers', { ...server, name });
    expect(status).toBe(201);
    expect(headers.location).toBe(`/api/v1/projects/default/servers/${encodeURIComponent(name)}`);
    const { body } = await ask(`GET ${headers.location}`);
    expect(body).toMatchObject({ name });
  });

  it('answers HEAD as GET, without the body', async () => {
    const { url } = await serveApi();
    const get = await exchange(url('/projects/default'), { method: 'GET' });
    const head = await openExchange(url('/projects/default'), { method: 'HEAD' });
    const { date: _date, ...headers } = get.headers;
    expect(head.headers).toMatchObject(headers);
    expect((await buffer(head)).length).toBe(0);
    expect(headers['content-length']).toBe(String(get.text.length));
    expect(headers['cache-control']).toBe('no-store');
  });
});

describe('one after the other', () => {
  it('creates, reads, changes and removes a project', async () => {
    const { ask } = await serveApi();
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
    const { ask } = await serveApi();
    const servers = '/projects/default/servers';
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
    const moved = await ask(`PATCH ${servers}/github`, {
      transport: 'http',
      config: { url: 'https://example.test' },
    });
    expect(moved.body).toMatchObject({ transport: 'http', config: { url: 'https://example.test' } });
    expect(await ask(`POST ${servers}/github/test`)).toMatchObject({
      status: 200,
      body: { ok: true, tools: 3 },
    });
    expect((await ask(`GET ${servers}/github/logs`)).body).toEqual({ lines: ['github says hello'] });
    expect((await ask(`DELETE ${servers}/github`)).status).toBe(204);
    expect((await ask(`GET ${servers}`)).body).toEqual({ servers: [] });
  });

  it('sets a secret, and says whether it is new', async () => {
    const { ask } = await serveApi();
    const put = () => ask('PUT /projects/default/secrets/TOKEN', { value: 's3cret' });
    const answers = [await put(), await put()];
    expect(answers.map(({ status }) => status)).toEqual([201, 200]);
    expect(JSON.stringify(answers)).not.toContain('s3cret');
    expect((await ask('POST /secrets/rotate')).body).toEqual({ rotated: 0, key_id: 'one' });
    expect((await ask('DELETE /projects/default/secrets/TOKEN')).status).toBe(204);
    expect((await ask('DELETE /projects/default/secrets/TOKEN')).status).toBe(404);
  });

  it('installs a product, and keeps all of its manifest', async () => {
    const { ask, backend } = await serveApi();
    const servers = [
      { name: 'one', transport: 'stdio', command: 'a', args: ['b'], env: { C: 'd' }, replicas: 2 },
      { name: 'two', transport: 'http', url: 'https://example.test', headers: { 'x-a': 'b' } },
    ];
    const manifest = { name: 'kit', version: '1.0', mcp: { servers }, agents: [{ id: 7 }] };
    const answers = [
      await ask('POST /projects/default/products', manifest),
      await ask('POST /projects/default/products', manifest),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, 200]);
    const [project] = [...backend.all.values()];
    expect(project!.products.get('kit')!.manifest).toEqual(manifest);
    expect([...project!.servers.values()].map(({ input }) => input)).toEqual([
      {
        name: 'one',
        description: null,
        transport: 'stdio',
        config: { command: 'a', args: ['b'], env: { C: 'd' } },
        settings: { replicas: 2 },
        enabled: true,
      },
      {
        name: 'two',
        description: null,
        transport: 'http',
        config: { url: 'https://example.test', headers: { 'x-a': 'b' } },
        settings: {},
        enabled: true,
      },
    ]);
  });

  it('switches a tool, filters calls, imports a file as it came, tells how it is', async () => {
    const { ask, backend } = await serveApi();
    const tool = await ask('PATCH /projects/default/tools/a%2Fb', { enabled: false });
    expect(tool.body).toMatchObject({ name: 'a/b', enabled: false });
    await ask('GET /projects/default/calls');
    await ask('GET /projects/default/calls?server=x&status=ok&limit=5&since=2030-01-01T12:00:00%2B02:00');
    expect(backend.filters).toEqual([
      { limit: 50 },
      { limit: 5, server: 'x', status: 'ok', since: new Date('2030-01-01T10:00:00Z') },
    ]);
    const text = '{"mcpServers": {}, /* none */}';
    const imported = await ask('POST /projects/default/import?replace=true', text);
    expect(imported).toMatchObject({ status: 201, body: { imported: ['github'], notes: ['replaced'] } });
    expect(backend.imported).toEqual([text]);
    expect((await ask('GET /status')).body).toMatchObject({ version: '1.2.3' });
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
  ])('%s is answered with %d', async (version, status) => {
    const { ask } = await serveApi();
    await ask('POST /projects', { name: 'web' });
    const changed = await ask('PATCH /projects/web', { description: 'x' }, { 'if-match': version });
    expect(changed.status).toBe(status);
    if (status === 412) expect(changed.error).toMatchObject({ code: 'version_conflict' });
  });
});

describe('failures', () => {
  it('are shown with their code and details', async () => {
    const { ask, backend } = await serveApi();
    backend.fault = new SwitchboardError('database_unavailable', 'It is away.', { data: { since: 1 } });
    expect(await ask('GET /status')).toMatchObject({
      status: 503,
      error: { code: 'database_unavailable', message: 'It is away.', details: { since: 1 } },
    });
  });

  it('of our own are shown to nobody but to whom they are reported', async () => {
    const onFault = vi.fn();
    const { ask, backend } = await serveApi(onFault);
    backend.fault = new TypeError('password=hunter2');
    const { status, body } = await ask('GET /status');
    expect({ status, body }).toEqual({
      status: 500,
      body: {
        error: { code: 'internal', message: 'Something went wrong inside Switchboard.', details: {} },
      },
    });
    expect(onFault).toHaveBeenCalledExactlyOnceWith(backend.fault);
  });

  it('do no harm when the client is gone by then', async () => {
    const onFault = vi.fn();
    const { ask, backend, peer } = await serveApi(onFault);
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<never>();
    backend.status = () => {
      asked.resolve();
      return answer.promise;
    };
    const client = connect(Number(peer.url.port), '127.0.0.1');
    client.write(`GET /api/v1/status HTTP/1.1\r\nhost: ${peer.url.host}\r\n\r\n`);
    const socket = await peer.sockets.first(() => true);
    await asked.promise;
    client.destroy();
    await once(socket, 'close');
    answer.reject(new Error('too late'));
    expect((await ask('GET /projects')).status).toBe(200);
  });

  it('of a body that is cut off do no harm', async () => {
    const onFault = vi.fn();
    const { ask, peer } = await serveApi(onFault);
    const client = connect(Number(peer.url.port), '127.0.0.1');
    client.write(
      `POST /api/v1/projects HTTP/1.1\r\nhost: ${peer.url.host}\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{`,
    );
    const socket = await peer.sockets.first(() => true);
    client.destroy();
    await once(socket, 'close');
    expect((await ask('GET /projects')).body).toMatchObject({ projects: [{ name: 'default' }] });
    expect(onFault).not.toHaveBeenCalled();
  });
});

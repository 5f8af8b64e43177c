import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { startForTests } from '../../test/helpers/api-client.ts';
import { EventStream, exchange, openExchange } from '../../test/helpers/raw-http.ts';
import { fixtureServer } from '../../test/helpers/switchboard.ts';
import { SwitchboardError } from '../errors.ts';
import type { RpcError } from '../protocol/jsonrpc.ts';
import { parseLossless } from '../protocol/lossless.ts';

const time = { name: 'time', image: 'mcp/time' };
const { command, args } = fixtureServer('toolbox');
const box = { name: 'time', provider: 'process', command, args };
const { services, serve: serveApi, newName } = await startForTests();
const { store, hosting, refresher } = services.database!;
const rows = () => hosting.registered.all().map(({ row }) => row);

afterEach(async () => {
  for (const { id } of rows()) await store.hosted.delete(id, undefined);
  await refresher.refresh();
});

async function serve(server: object = time) {
  const served = await serveApi();
  const { status, body } = await served.ask('POST /mcp/servers', server);
  expect(status).toBe(201);
  return { ...served, id: String(body!.id) };
}

/** Responds to calls instead of the servers. */
function respond(call: typeof hosting.calls.call) {
  const spy = vi.spyOn(hosting.calls, 'call').mockImplementation(call);
  onTestFinished(() => spy.mockRestore());
  return spy;
}

describe('a hosted server', () => {
  it('is created with defaults', async () => {
    const { ask } = await serveApi();
    const { status, headers, body } = await ask('POST /mcp/servers', time);
    expect(status).toBe(201);
    expect(headers).toMatchObject({ location: `/api/v1/mcp/servers/${body!.id}`, etag: '"1"' });
    expect(body).toMatchObject({ project: 'default' });
    expect(rows()[0]).toMatchObject({
      ...{ name: 'time', enabled: true },
      resource_limits: { cpu: '0.5', memory: '512M', disk: '1G', pids: 128 },
      mcp_config: {
        ...{ image: 'mcp/time', command: null, args: [], stdio_bridge: true, restart_policy: 'always' },
        ...{ environment: {}, port: null, host_port: null, path: '/mcp', network: false },
        ...{ volumes: [], writable_root: false },
        provider: null,
      },
    });
  });

  it('is created as requested, and never shows the values of its environment', async () => {
    const { ask } = await serveApi();
    const web = newName();
    await ask('POST /projects', { name: web });
    const asked = {
      ...{ name: 'langfuse', project_id: web, enabled: false, image: 'ghcr.io/a/b:1.2' },
      ...{ command: 'node', args: ['-v', ''], stdio_bridge: false, restart_policy: 'on-failure' },
      ...{ environment: { API_KEY: 's3cret', 'npm.x': `\${X}` }, port: 8080, path: '/', network: true },
      ...{ volumes: ['/data', '/var/lib/x y'], writable_root: true, provider: 'docker' },
      resource_limits: { cpu: 1, memory: '1024MB', pids: 64 },
    };
    const { status, body } = await ask('POST /mcp/servers', asked);
    expect(status, JSON.stringify(body)).toBe(201);
    const { project_id, environment, resource_limits, ...rest } = asked;
    expect(body).toMatchObject({
      ...{ ...rest, project: project_id, provider: null, requested_provider: 'docker' },
      resource_limits: { cpu: '1', memory: '1G', disk: '1G', pids: 64 },
      environment: ['npm.x', 'API_KEY'],
    });
    expect(rows()[0]!.mcp_config.environment).toEqual({ ...environment, API_KEY: `\${LANGFUSE_API_KEY}` });
    const views = [body, (await ask('GET /mcp/servers')).body, (await ask('GET /mcp/servers/langfuse')).body];
    expect(JSON.stringify(views)).not.toContain('s3cret');
    expect(resource_limits.memory).toBe('1024MB');
  });

  it.each<[string, object]>([
    ['name', { name: 'a/b' }],
    ['name', { name: '' }],
    ['name', { name: randomUUID() }],
    ['image', { image: 'Not An Image' }],
    ['image', { image: 'a b' }],
    ['image', { image: '-x' }],
    ['image', { image: 'repo/UPPER' }],
    ['image', { image: 'x:' }],
    ['image', { image: 'x@sha256:12' }],
    ['image', { image: null }],
    ['image', { image: null, command: 'x', provider: 'gvisor' }],
    ['command', { command: ' ' }],
    ['command', { image: null, provider: 'process' }],
    ['args[1]', { args: ['a', 2] }],
    ['stdio_bridge', { stdio_bridge: 'yes' }],
    ['port', { stdio_bridge: false }],
    ['port', { port: 0 }],
    ['port', { port: 65_536 }],
    ['path', { port: 80, path: 'mcp' }],
    ['path', { port: 80, path: '/mcp?x' }],
    ['path', { port: 80, path: '//127.0.0.1:81/mcp' }],
    ['path', { port: 80, path: '/\\127.0.0.1:81/mcp' }],
    ['path', { port: 80, path: '/mcp\\x' }],
    ['restart_policy', { restart_policy: 'sometimes' }],
    ['environment["A=B"]', { environment: { 'A=B': 'x' } }],
    ['environment["1A"]', { environment: { '1A': 'x' } }],
    ['environment.A', { environment: { A: 1 } }],
    ['environment.A', { environment: { A: null } }],
    ['resource_limits.cpu', { resource_limits: { cpu: 'much' } }],
    ['resource_limits.memory', { resource_limits: { memory: '1X' } }],
    ['resource_limits.memory', { resource_limits: { memory: '1M' } }],
    ['resource_limits.disk', { resource_limits: { disk: true } }],
    ['resource_limits.pids', { resource_limits: { pids: 1 } }],
    ['resource_limits.gpu', { resource_limits: { gpu: 1 } }],
    ['provider', { provider: 'podman' }],
    ['network', { network: 'host' }],
    ['volumes[0]', { volumes: ['data'] }],
    ['volumes[0]', { volumes: ['/'] }],
    ['volumes[0]', { volumes: ['/data/'] }],
    ['volumes[0]', { volumes: ['/a//b'] }],
    ['volumes[1]', { volumes: ['/a', '/a/../b'] }],
    ['volumes[0]', { volumes: ['/./a'] }],
    ['volumes[0]', { volumes: ['/proc/1'] }],
    ['volumes', { volumes: ['/a', '/a'] }],
    ['mounts', { mounts: [] }],
  ])('is rejected for its %s: %j', async (path, wrong) => {
    const { ask } = await serveApi();
    const { status, error } = await ask('POST /mcp/servers', { ...time, ...wrong });
    expect(status).toBe(400);
    expect(error).toMatchObject({ code: 'invalid_input', details: { problems: [{ path }] } });
    expect(rows()).toEqual([]);
  });

  it.each([
    'mcp/time',
    'emergent/mcp-langfuse:latest',
    'localhost:5000/a/b_c__d.e--f:V1.0-x',
    `sha256:${'a'.repeat(64)}`,
    `ghcr.io/a@sha256:${'0'.repeat(64)}`,
  ])('accepts the image %s', async (image) => {
    const { ask } = await serveApi();
    expect((await ask('POST /mcp/servers', { ...time, image })).status).toBe(201);
  });

  it('needs no image if it is a process', async () => {
    const { ask } = await serveApi();
    for (const provider of ['process', null]) {
      const { status } = await ask('POST /mcp/servers', { name: `p-${provider}`, command: 'node', provider });
      expect(status).toBe(201);
    }
  });

  it('is identified by its id, or by its name if that is unambiguous', async () => {
    const { ask, id } = await serve();
    const web = newName();
    await ask('POST /projects', { name: web });
    const { body: other } = await ask('POST /mcp/servers', { ...time, project_id: web });
    expect((await ask(`GET /mcp/servers/${id}`)).body).toMatchObject({ id, project: 'default' });
    expect((await ask('GET /mcp/servers/time')).status).toBe(409);
    const names = async (query: string) =>
      (await ask(`GET /mcp/servers${query}`)).body!.servers as { id: string }[];
    expect(await names('')).toHaveLength(2);
    expect(await names(`?project=${web}`)).toMatchObject([{ id: other!.id }]);
    expect((await ask('GET /mcp/servers?project=nowhere')).error.code).toBe('unknown_project');
    expect((await ask('POST /mcp/servers', time)).error.code).toBe('conflict');
    expect((await ask('POST /mcp/servers', { ...time, project_id: 'nowhere' })).status).toBe(404);
  });

  it('shows its resource usage when requested alone', async () => {
    const { ask, id } = await serve(box);
    await hosting.calls.call(id, { method: 'ping' }, undefined);
    const { headers, body } = await ask(`GET /mcp/servers/${id}`);
    expect(headers.etag).toBe('"1"');
    expect(body).toMatchObject({ usage: { memory_bytes: expect.any(Number) } });
    expect((await ask('GET /mcp/servers')).body).toMatchObject({ servers: [{ usage: null }] });
  });

  it('changes only in the given fields', async () => {
    const { ask, id } = await serve();
    const config = () => rows()[0]!.mcp_config;
    const change = (body: object, headers = {}) => ask(`PATCH /mcp/servers/${id}`, body, headers);
    await change({ environment: { A: '1', B: '2' }, resource_limits: { memory: '1G', cpu: '2' } });
    const { body } = await change({
      ...{ environment: { A: null, C: '3' }, resource_limits: { memory: null } },
      ...{ image: 'mcp/time:2', volumes: ['/data'] },
    });
    expect(body).toMatchObject({
      ...{ image: 'mcp/time:2', environment: ['B', 'C'], volumes: ['/data'], version: 3 },
      resource_limits: { cpu: '2', memory: '512M', disk: '1G', pids: 128 },
    });
    expect(config().environment).toEqual({ B: '2', C: '3' });
    expect((await change({ enabled: false }, { 'if-match': '"2"' })).status).toBe(412);
    expect((await change({ enabled: false }, { 'if-match': '"3"' })).body).toMatchObject({ enabled: false });
    const { error } = await change({ image: null });
    expect(error.details.problems).toMatchObject([{ path: 'image' }]);
    expect((await change({ stdio_bridge: false })).status).toBe(400);
    expect((await change({ stdio_bridge: false, port: 80 })).status).toBe(200);
    expect((await change({ port: null })).status).toBe(400);
    for (const fixed of [{ name: 'other' }, { project_id: 'web' }]) {
      const refused = (await change(fixed)).error;
      expect(refused.code).toBe('invalid_input');
      expect(refused.message).toMatch(/^(name|project_id) cannot be changed: volumes /);
    }
  });

  it('can be stopped, started and restarted', async () => {
    const { ask } = await serve(box);
    const { body: stopped } = await ask('POST /mcp/servers/time/stop');
    expect(stopped).toMatchObject({ enabled: false, version: 2 });
    const { body: started } = await ask('POST /mcp/servers/time/start');
    expect(started).toMatchObject({ enabled: true, version: 3 });
    const restart = () => ask('POST /mcp/servers/time/restart');
    const [first, second] = [await restart(), await restart()];
    expect([first, second]).toMatchObject([{ status: 200 }, { status: 200 }]);
    expect(second.body).toMatchObject({ container_status: 'running' });
    expect(second.body!.provider_workspace_id).not.toBe(first.body!.provider_workspace_id);
    for (const what of ['stop', 'start', 'restart']) {
      expect((await ask(`POST /mcp/servers/nobody/${what}`)).status).toBe(404);
    }
  });

  it('is removed, with its volumes only on request', async () => {
    const { ask, id } = await serve(box);
    const supervisor = await hosting.requireSupervisor(id);
    const removeVolumes = vi.spyOn(supervisor, 'removeVolumes');
    onTestFinished(() => removeVolumes.mockRestore());
    expect((await ask(`DELETE /mcp/servers/${id}?volumes=all`)).status).toBe(400);
    expect((await ask(`DELETE /mcp/servers/${id}`, undefined, { 'if-match': '"9"' })).status).toBe(412);
    expect((await ask(`DELETE /mcp/servers/${id}`)).status).toBe(204);
    expect(removeVolumes).not.toHaveBeenCalled();
    expect((await ask(`DELETE /mcp/servers/${id}`)).status).toBe(404);
    await ask('POST /mcp/servers', box);
    expect((await ask('DELETE /mcp/servers/time?volumes=delete')).status).toBe(204);
    expect(removeVolumes).toHaveBeenCalledOnce();
  });
});

describe('a call to a hosted server', () => {
  const json = { 'content-type': 'application/json' };

  it('passes the request and response on as written', async () => {
    const { url, id } = await serve();
    const params = `{ "name": "x", "arguments": {"id": 12345678901234567890, "tiny": 1.0, "nul": "\\u0000"} }`;
    const call = respond(async () => ({ result: parseLossless('{"id":12345678901234567890,"a":1.0}') }));
    const body = `{"method":"tools/call","params":1,"p\\u0061rams":${params},"timeout_ms":250}`;
    const answer = await exchange(url(`/mcp/servers/${id}/call`), { method: 'POST', headers: json, body });
    expect([answer.status, answer.text]).toEqual([200, '{"result":{"id":12345678901234567890,"a":1.0}}']);
    expect(answer.headers['content-type']).toBe('application/json');
    const principal = expect.objectContaining({ id: 'local' });
    const asked = { method: 'tools/call', paramsText: params, timeoutMs: 250, principal };
    expect(call).toHaveBeenCalledExactlyOnceWith(id, asked, expect.any(AbortSignal));
  });

  it('needs neither parameters nor a timeout', async () => {
    const { ask, id } = await serve();
    const call = respond(async () => ({ result: {} }));
    expect((await ask('POST /mcp/servers/time/call', { method: 'ping' })).body).toEqual({ result: {} });
    const principal = expect.objectContaining({ id: 'local' });
    const asked = { method: 'ping', paramsText: undefined, timeoutMs: undefined, principal };
    expect(call).toHaveBeenCalledExactlyOnceWith(id, asked, expect.any(AbortSignal));
  });

  it.each<[object, string]>([
    [{}, 'method'],
    [{ method: '' }, 'method'],
    [{ method: 'x', params: [] }, 'params'],
    [{ method: 'x', params: null }, 'params'],
    [{ method: 'x', timeout_ms: 0 }, 'timeout_ms'],
    [{ method: 'x', id: 1 }, 'id'],
  ])('is rejected: %j', async (body, path) => {
    const { ask } = await serve();
    const call = respond(async () => ({ result: {} }));
    const { status, error } = await ask('POST /mcp/servers/time/call', body);
    expect(status).toBe(400);
    expect(error.details.problems).toMatchObject([{ path }]);
    expect(call).not.toHaveBeenCalled();
  });

  it('is rejected if it is nested too deeply', async () => {
    const { url } = await serve();
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const body = `{"method": "x", "params": {"deep": ${deep}}}`;
    const { status, json: said } = await exchange(url('/mcp/servers/time/call'), { headers: json, body });
    expect([status, said]).toMatchObject([400, { error: { message: 'params is nested too deep.' } }]);
  });

  it.each([
    [-32601, 404],
    [-32602, 400],
    [-32603, 502],
    [-32050, 502],
    [7, 422],
  ])('maps the server error %d to the status %d, with its message and data', async (code, status) => {
    const { url } = await serve();
    const errorText = `{"code":${code},"message":"Not so","data":{"id":12345678901234567890}}`;
    respond(async () => ({ error: parseLossless(errorText) as RpcError }));
    const answer = await exchange(url('/mcp/servers/time/call'), {
      headers: json,
      body: { method: 'tools/call' },
    });
    expect(answer.status).toBe(status);
    expect(answer.text).toBe(
      `{"error":{"code":"server_error","message":"Not so","details":{"rpc":${errorText}}}}`,
    );
  });

  it('reports a timeout and an unavailable server', async () => {
    const { ask } = await serve();
    for (const [code, status] of [
      ['call_timeout', 504],
      ['server_unavailable', 503],
    ] as const) {
      respond(() => Promise.reject(new SwitchboardError(code, 'No answer.')));
      const answer = await ask('POST /mcp/servers/time/call', { method: 'ping' });
      expect([answer.status, answer.error.code]).toEqual([status, code]);
    }
    expect((await ask('POST /mcp/servers/nobody/call', { method: 'ping' })).status).toBe(404);
  });

  it('is cancelled when the client disconnects', async () => {
    const { url } = await serve();
    const called = Promise.withResolvers<AbortSignal>();
    respond((_id, _input, signal) => {
      called.resolve(signal!);
      return new Promise(() => {});
    });
    const gone = new AbortController();
    const asked = fetch(url('/mcp/servers/time/call'), {
      ...{ method: 'POST', headers: json, body: '{"method":"ping"}', signal: gone.signal },
    });
    const signal = await called.promise;
    expect(signal.aborted).toBe(false);
    const noticed = once(signal, 'abort');
    gone.abort();
    await expect(asked).rejects.toThrow();
    await noticed;
  });
});

describe('the log of a hosted server', () => {
  /** A stopped server with the given log, and a count of its subscribers. */
  const serveLog = async () => {
    let followers = 0;
    const { logs } = hosting;
    const add = logs.add.bind(logs);
    const spy = vi.spyOn(logs, 'add').mockImplementation((...subscription) => {
      followers++;
      const { lines, stop } = add(...subscription);
      const leave = () => {
        followers--;
        stop();
      };
      return { lines, stop: leave };
    });
    onTestFinished(() => spy.mockRestore());
    const served = await serve({ ...time, enabled: false });
    const log = (await hosting.requireSupervisor(served.id)).log(served.id)!;
    const lines = () => log.lines.map(({ at, line }) => ({ at: at.toISOString(), line }));
    return { ...served, say: (line: string) => log.add(line), lines, followers: () => followers };
  };
  const follow = async (url: (path: string) => string, query = 'follow=1') => {
    const response = await openExchange(url(`/mcp/servers/time/logs?${query}`), { method: 'GET' });
    const stream = new EventStream(response);
    onTestFinished(() => void response.destroy());
    return stream;
  };
  const isLine = ({ event }: { event?: string }) => event === 'line';
  const textOf = ({ data }: { data?: string }) => (JSON.parse(data!) as { line: string }).line;

  it('returns the existing lines', async () => {
    const { ask, say, lines } = await serveLog();
    say('hello');
    expect((await ask('GET /mcp/servers/time/logs')).body).toEqual({ lines: lines() });
    expect((await ask('GET /mcp/servers/time/logs?follow=0')).body).toEqual({ lines: lines() });
    expect((await ask('GET /mcp/servers/time/logs?follow=yes')).status).toBe(400);
    for (const query of ['', '?follow=1']) {
      expect((await ask(`GET /mcp/servers/nobody/logs${query}`)).error.code).toBe('not_found');
    }
  });

  it('streams new lines to every reader until it disconnects', async () => {
    const { url, say, lines: logged, followers } = await serveLog();
    say('before');
    const [one, other] = [await follow(url), await follow(url, 'follow=true')];
    expect(one.response.headers['content-type']).toBe('text/event-stream');
    say('after\nwards');
    for (const { events } of [one, other]) {
      const lines = await events.several(2, isLine);
      expect(lines.map(textOf)).toEqual(['before', 'after\nwards']);
      expect(lines.map(({ data }) => JSON.parse(data!))).toEqual(logged());
    }
    expect(followers()).toBe(2);
    one.response.destroy();
    await expect.poll(followers).toBe(1);
    say('later');
    await other.events.first((event) => isLine(event) && textOf(event) === 'later');
  });

  it('starts the response before the first line', async () => {
    const { url } = await serve();
    expect((await follow(url)).response.statusCode).toBe(200);
  });

  it('ends with the server and with the API', async () => {
    const { ask, api, url, followers } = await serveLog();
    const removed = await follow(url);
    const ended = once(removed.response, 'end');
    await ask('DELETE /mcp/servers/time');
    await ended;
    await ask('POST /mcp/servers', time);
    const closed = await follow(url);
    const ending = once(closed.response, 'end');
    api.close();
    await ending;
    expect(followers()).toBe(0);
    const late = await follow(url);
    await once(late.response, 'end');
    expect(followers()).toBe(0);
  });

  it('has no subscription for a HEAD request', async () => {
    const { url, followers } = await serveLog();
    const { status } = await exchange(url('/mcp/servers/time/logs?follow=1'), { method: 'HEAD' });
    expect(status).toBe(200);
    expect(followers()).toBe(0);
  });
});

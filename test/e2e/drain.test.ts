import { once } from 'node:events';
import { Agent, request as openRequest } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { RawModern } from '../eras/raw-modern.ts';
import { bridgeProgram, legacyOpening, modernRequest, startBridge } from '../helpers/bridge.ts';
import { connectHttp, connectSse, connectStdio, textOf } from '../helpers/clients.ts';
import { loaded } from '../helpers/counting.ts';
import { patienceMs } from '../helpers/patience.ts';
import { EventStream, openExchange, RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const waited = { content: [{ type: 'text', text: 'waited' }] };
const isStopping = {
  code: -32603,
  message: 'Switchboard is stopping: try again when it is back.',
  data: { code: 'server_unavailable' },
};

/** A Switchboard with a server whose tool `wait` responds on command. */
class Scene implements AsyncDisposable {
  readonly witness: Witness;
  readonly switchboard: RunningSwitchboard;

  private constructor(witness: Witness, switchboard: RunningSwitchboard) {
    this.witness = witness;
    this.switchboard = switchboard;
  }

  static async start(shutdownGraceMs: number | undefined, server: object = {}, others = {}): Promise<Scene> {
    const witness = await Witness.open();
    const box = { ...fixtureServer('toolbox', witness.env('box')), ...server };
    const asking = fixtureServer('asks-on-order', witness.env('asking'));
    const mcpServers = { box, asking, ...others };
    // Slow responses must not turn into streams on a slow machine.
    const switchboard = { shutdownGraceMs, keepAliveMs: patienceMs };
    const running = await startSwitchboard(mcpServers, switchboard);
    return new Scene(witness, running);
  }

  /** Resolves when `count` calls have reached the server. */
  async atServer(count = 1): Promise<void> {
    await this.witness.severalOf('box', 'waiting', count);
  }

  /** Sends the signal, and resolves when Switchboard accepts no more requests. */
  async interrupt(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.switchboard.process.kill(signal);
    await this.switchboard.event(({ event }) => event === 'stopping');
  }

  /** Like `interrupt`, and returns what Switchboard waits for. */
  async interruptWaiting(): Promise<Record<string, unknown>> {
    await this.interrupt();
    return this.switchboard.event(({ event }) => event === 'waiting');
  }

  /** Waits without a second signal, which would force the exit. Returns the exit code. */
  async ended(): Promise<number | null> {
    const { process: program } = this.switchboard;
    if (program.exitCode === null && program.signalCode === null) await once(program, 'exit');
    return program.exitCode;
  }

  get isWaiting(): boolean {
    return this.switchboard.events.some(({ event }) => event === 'waiting');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.switchboard.stop();
    await this.witness[Symbol.asyncDispose]();
  }
}

class KeptConnection {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1 });
  private readonly baseUrl: string;

  constructor(baseUrl: string) {
    this.baseUrl = baseUrl;
  }

  async send(path: string, body?: object, headers: Record<string, string> = {}) {
    const method = body === undefined ? 'GET' : 'POST';
    const request = openRequest(`${this.baseUrl}${path}`, { method, headers, agent: this.agent });
    request.end(body && JSON.stringify(body));
    const [response] = await once(request, 'response');
    return {
      status: response.statusCode as number,
      connection: response.headers.connection as string,
      json: JSON.parse((await buffer(response)).toString()) as Record<string, unknown>,
    };
  }
}

describe.concurrent('a call in flight at SIGTERM', () => {
  it('may finish, and the output shows the time limit', async () => {
    await using scene = await Scene.start(undefined);
    const session = await RawSession.open(scene.switchboard.url);
    const call = session.post({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'wait' } });
    await scene.atServer();
    expect(await scene.interruptWaiting()).toEqual({
      event: 'waiting',
      calls: 1,
      servers: ['box'],
      limit_ms: 10_000,
    });
    scene.witness.tell('box', 'go');
    expect(await call).toMatchObject({ status: 200, json: { id: 7, result: waited } });
    expect(await scene.ended()).toBe(0);
  });

  it('may finish at SIGINT too, as may a batch, a queued call and clients of every kind', async () => {
    await using scene = await Scene.start(patienceMs, { concurrency: 5 });
    const { url, baseUrl, home } = scene.switchboard;
    const raw = await RawSession.open(url, '2025-03-26');
    await using http = await connectHttp(url);
    await using sse = await connectSse(`${baseUrl}/sse`);
    await using bridge = await connectStdio(bridgeProgram(baseUrl, home, null));
    const wait = (order: string) => ({ name: 'wait', arguments: { order } });
    const request = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: wait(String(id)) });
    const batch = raw.post([request(101), request(102)]);
    const calls = [http, sse, bridge].map(({ client }, index) => client.callTool(wait(`client ${index}`)));
    await scene.atServer(5);
    const modern = new RawModern(url).callText('wait', { order: 'modern' });
    const inLine = raw.call('echo', { text: 'in line' });
    await loaded(scene.switchboard, 5, 2);
    await scene.interrupt('SIGINT');
    expect(await scene.switchboard.event(({ event }) => event === 'waiting')).toMatchObject({
      servers: ['box'],
    });
    for (const order of ['101', '102', 'client 0', 'client 1', 'client 2', 'modern'])
      scene.witness.tell('box', order);
    expect(await inLine).toMatchObject({ result: { content: [{ text: 'in line' }] } });
    expect((await batch).json).toEqual([
      { jsonrpc: '2.0', id: 101, result: waited },
      { jsonrpc: '2.0', id: 102, result: waited },
    ]);
    for (const call of calls) expect(textOf(await call)).toBe('waited');
    await expect(modern).resolves.toBe('waited');
    expect(await scene.ended()).toBe(0);
  });

  it('fails under its id after the time limit: alone, in a batch, queued, in both eras', async () => {
    await using scene = await Scene.start(200, { concurrency: 2 });
    const { url, baseUrl } = scene.switchboard;
    const session = await RawSession.open(url, '2025-03-26');
    await using sse = await connectSse(`${baseUrl}/sse`);
    const wait = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'wait' } });
    const batch = session.post([wait(1), wait(2)]);
    await scene.atServer(2);
    const single = session.post(wait(3));
    const eventStream = session.post(wait(4), { accept: 'text/event-stream' });
    const ofSse = sse.client.callTool({ name: 'wait' });
    ofSse.catch(() => {});
    const modern = new RawModern(url).call('wait', {}, {}, { id: 'five' });
    await loaded(scene.switchboard, 2, 4);
    await scene.interrupt();
    expect((await batch).json).toMatchObject([
      { id: 2, error: isStopping },
      { id: 1, error: isStopping },
    ]);
    expect(await single).toMatchObject({ status: 200, json: { id: 3, error: isStopping } });
    expect((await eventStream).text).toContain('"id":4,"error":');
    expect(await modern).toMatchObject({ id: 'five', error: isStopping });
    await expect(ofSse).rejects.toMatchObject({ code: -32603 });
    expect(await scene.ended()).toBe(0);
    expect(scene.switchboard.events.at(-1)).toMatchObject({ event: 'server' });
    expect(scene.switchboard.events).toContainEqual({
      event: 'warning',
      message: '6 calls (box) did not end within 200 ms (setting shutdownGraceMs), and failed.',
    });
  });

  it('fails at once without a grace period, even while its server starts', async () => {
    const silent = fixtureServer('never-responds');
    await using scene = await Scene.start(0, {}, { silent });
    const session = await RawSession.open(scene.switchboard.url);
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'wait' } };
    // The response starts when the request is received.
    const headers = session.headers({ accept: 'text/event-stream' });
    const stream = new EventStream(await openExchange(session.url, { headers, body }));
    await scene.interrupt();
    await stream.ended;
    expect(stream.messages).toMatchObject([{ id: 1, error: isStopping }]);
    expect(await scene.ended()).toBe(0);
    expect(scene.isWaiting).toBe(false);
  });

  it('fails at once if it waits for its client', async () => {
    await using scene = await Scene.start(patienceMs);
    const session = await RawSession.open(scene.switchboard.url, '2025-11-25', { elicitation: {} });
    await session.toolNames();
    scene.witness.tell('asking', 'ask');
    const stream = await session.openCall('ask', { about: 'stopping' }, 'token');
    await stream.message(({ method }) => method === 'elicitation/create');
    await scene.interrupt();
    expect(await stream.message(({ error }) => error !== undefined)).toMatchObject({ error: isStopping });
    expect(await scene.ended()).toBe(0);
    expect(scene.isWaiting).toBe(false);
  });

  it('fails at once after a second signal', async () => {
    await using scene = await Scene.start(patienceMs);
    const session = await RawSession.open(scene.switchboard.url);
    const call = session.call('wait').catch(() => 'cut');
    await scene.atServer();
    await scene.interruptWaiting();
    const { process: program } = scene.switchboard;
    const exited = once(program, 'exit');
    // Signals in the first half second count as the same request.
    const again = setInterval(() => program.kill('SIGTERM'), 50);
    await exited;
    clearInterval(again);
    expect(program.exitCode).toBe(130);
    expect(await call).toBe('cut');
  });
});

it.concurrent('calls over a bridge that is stopped each get an error', async () => {
  await using scene = await Scene.start(0);
  const { baseUrl, home } = scene.switchboard;
  await using bridge = startBridge(bridgeProgram(baseUrl, home, null));
  bridge.say(...legacyOpening(0));
  await bridge.answerTo(0);
  const params = { name: 'wait', arguments: {} };
  bridge.say({ id: 1, method: 'tools/call', params }, modernRequest(2, 'tools/call', params));
  await scene.atServer(2);
  bridge.interrupt();
  const message = 'switchboard stdio ended before the response arrived.';
  for (const id of [1, 2]) expect(await bridge.answerTo(id)).toMatchObject({ error: { message } });
});

describe.concurrent('a Switchboard that waits for a call', () => {
  it('accepts nothing new, is not ready, and ends idle streams', async () => {
    await using scene = await Scene.start(patienceMs);
    const { url, baseUrl } = scene.switchboard;
    const session = await RawSession.open(url);
    const idle = await RawSession.open(url);
    const standing = await idle.listen();
    const subscription = await new RawModern(url).listen({ toolsListChanged: true });
    const kept = Array.from({ length: 6 }, () => new KeptConnection(baseUrl));
    for (const connection of kept) expect(await connection.send('/readyz')).toMatchObject({ status: 200 });
    const call = session.call('wait');
    await scene.atServer();
    await scene.interruptWaiting();
    await standing.ended;
    await subscription.stream.ended;
    const [ready, alive, api, opening, request, modern] = kept;
    expect(await ready!.send('/readyz')).toMatchObject({
      status: 503,
      connection: 'close',
      json: { error: isStopping },
    });
    expect(await alive!.send('/healthz')).toMatchObject({ status: 200 });
    expect(await api!.send('/api/v1/status')).toMatchObject({
      status: 503,
      json: { error: { code: 'server_unavailable' } },
    });
    const initialize = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25' },
    };
    expect(await opening!.send('/mcp', initialize, idle.headers())).toMatchObject({ status: 503 });
    const ping = { jsonrpc: '2.0', id: 'mine', method: 'ping' };
    expect(await request!.send('/mcp', ping, session.headers())).toMatchObject({
      status: 503,
      json: { id: 'mine', error: isStopping },
    });
    const described = { jsonrpc: '2.0', ...modernRequest('mine', 'tools/list') };
    const headers = { ...idle.headers(), 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' };
    expect(await modern!.send('/mcp', described, headers)).toMatchObject({
      status: 503,
      json: { id: 'mine', error: isStopping },
    });
    await expect(RawSession.open(url)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    scene.witness.tell('box', 'go');
    expect(await call).toMatchObject({ result: waited });
    expect(await scene.ended()).toBe(0);
  });

  it('lets the client cancel the call', async () => {
    await using scene = await Scene.start(patienceMs);
    const session = await RawSession.open(scene.switchboard.url);
    const kept = new KeptConnection(scene.switchboard.baseUrl);
    await kept.send('/healthz');
    const call = session.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'wait' } });
    await scene.atServer();
    await scene.interruptWaiting();
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    void kept.send('/mcp', cancelled, session.headers()).catch(() => {});
    await call;
    expect(await scene.ended()).toBe(0);
  });
});

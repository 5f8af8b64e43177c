import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectSecurely, type TLSSocket } from 'node:tls';
import { beforeEach, describe, expect, it } from 'vitest';
import { runCli, temporaryFolder } from '../helpers/cli.ts';
import { connectHttp, connectSse, textOf } from '../helpers/clients.ts';
import { type Identity, makeIdentity } from '../helpers/identity.ts';
import { requireOtherUser, startAsOther } from '../helpers/other-user.ts';
import { exchange, openExchange, RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { trust } from '../helpers/trust.ts';
import { tokenHeader } from '../helpers/with-key.ts';

const SLOW_MS = 1_000;
const LARGE = 5 * 1024 * 1024;

const identity = makeIdentity();
const next = makeIdentity();

/** The folder of a certificate and its key. */
async function writePair(folder: string, { cert, key }: Identity): Promise<void> {
  await mkdir(folder, { recursive: true });
  await Promise.all([writeFile(join(folder, 'cert.pem'), cert), writeFile(join(folder, 'key.pem'), key)]);
}

function start(
  folder: string,
  settings: object = {},
  servers: object = { box: fixtureServer('toolbox') },
): Promise<RunningSwitchboard> {
  const files = ['--tls-cert', join(folder, 'cert.pem'), '--tls-key', join(folder, 'key.pem')];
  return startSwitchboard(servers, settings, { args: ['--auth', ...files], database: 'shared' });
}

function portOf({ baseUrl }: RunningSwitchboard): number {
  return Number(new URL(baseUrl).port);
}

/** A connection that has not begun its handshake. */
function openPlain(switchboard: RunningSwitchboard): Socket {
  const socket = connect(portOf(switchboard), '127.0.0.1');
  socket.on('error', () => {});
  return socket;
}

/** On a busy machine, a handshake may take longer than the server waits: then again. */
async function openSecure(switchboard: RunningSwitchboard): Promise<TLSSocket> {
  for (;;) {
    const socket = connectSecurely({ port: portOf(switchboard), host: '127.0.0.1' });
    socket.on('error', () => {});
    const failure = await once(socket, 'secureConnect').then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error,
    );
    if (failure === undefined) return socket;
    if (failure.code !== 'ECONNRESET') throw failure;
  }
}

/** Which of the certificates a new connection gets. */
async function served(switchboard: RunningSwitchboard): Promise<string> {
  const socket = await openSecure(switchboard);
  const fingerprint = socket.getPeerX509Certificate()!.fingerprint256;
  socket.destroy();
  return fingerprint;
}

const health = (switchboard: RunningSwitchboard) =>
  exchange(`${switchboard.baseUrl}/healthz`, { method: 'GET' });

describe.skipIf(identity === undefined)('TLS (needs openssl for its certificates)', () => {
  let folder: string;
  let switchboard: RunningSwitchboard;
  let token: { authorization: string };

  setUp(async (use) => {
    const trusted = trust(identity!.cert, next!.cert);
    use({ [Symbol.asyncDispose]: async () => trusted[Symbol.dispose]() });
    folder = use(await temporaryFolder()).path;
    await writePair(folder, identity!);
    switchboard = use(await start(folder, { slowClientMs: SLOW_MS, keepAliveMs: 20 }));
    token = await tokenHeader(switchboard.home);
  });

  it('serves clients of each transport, which check the certificate', async () => {
    expect(switchboard.url).toMatch(/^https:/);
    await using streamable = await connectHttp(switchboard.url, {}, undefined, token);
    await using sse = await connectSse(`${switchboard.baseUrl}/sse`, {}, undefined, token);
    for (const { client } of [streamable, sse]) {
      const result = await client.callTool({ name: 'echo', arguments: { text: 'encrypted' } });
      expect(textOf(result)).toBe('encrypted');
    }
    expect((await exchange(switchboard.url, { body: {} })).status).toBe(401);
    expect((await health(switchboard)).status).toBe(200);
  });

  it('tells programs that use http what to do', async () => {
    const url = switchboard.baseUrl.replace('https:', 'http:');
    const answer = await exchange(`${url}/api/v1/status`, { method: 'GET', headers: token });
    expect(answer).toMatchObject({
      status: 400,
      json: { error: { message: expect.stringContaining('https://'), data: { code: 'invalid_request' } } },
    });
  });

  it('is not offered in versions that are broken', async () => {
    const socket = connectSecurely({
      ...{ port: portOf(switchboard), host: '127.0.0.1' },
      ...{ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
    });
    const [error] = (await once(socket, 'error')) as [Error];
    expect(error.message).toMatch(/protocol version/);
  });

  it('carries large results, to slow readers too', async () => {
    const session = await RawSession.open(switchboard.url, undefined, {}, token);
    const large = 'x'.repeat(LARGE);
    expect(await session.callText('echo', { text: large })).toBe(large);
    const body = { jsonrpc: '2.0', id: 'slow', method: 'tools/call' };
    const response = await openExchange(session.url, {
      headers: session.headers(),
      body: { ...body, params: { name: 'echo', arguments: { text: large } } },
    });
    // Longer than a client may make no progress at the end of a result.
    await delay(3 * SLOW_MS);
    let length = 0;
    for await (const chunk of response) length += (chunk as Buffer).length;
    expect(length).toBeGreaterThan(LARGE);
    await session.end();
  });

  it('disconnects clients that do not complete the handshake, or send nothing after it', async () => {
    const silent = openPlain(switchboard);
    const trickling = openPlain(switchboard);
    // The beginning of a greeting.
    const greeting = Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]);
    trickling.write(greeting);
    const timer = setInterval(() => trickling.write(Buffer.alloc(1)), SLOW_MS / 4);
    const idle = await openSecure(switchboard);
    const answer = text(idle);
    await Promise.all([silent, trickling].map((socket) => once(socket.resume(), 'close')));
    clearInterval(timer);
    expect(await answer).toMatch(/^HTTP\/1.1 408 /);
  });

  it('disconnects clients that send the body of a request too slowly', async () => {
    const socket = await openSecure(switchboard);
    const { host } = new URL(switchboard.baseUrl);
    const head = ['POST /mcp HTTP/1.1', `host: ${host}`, `authorization: ${token.authorization}`];
    socket.write([...head, 'content-type: application/json', 'content-length: 1000000', '', ''].join('\r\n'));
    const timer = setInterval(() => socket.write(' '), SLOW_MS / 4);
    const answer = await text(socket).catch(() => 'closed');
    clearInterval(timer);
    expect(answer).toMatch(/^(HTTP\/1.1 408 |closed)/);
  });

  it('does not end idle streams', async () => {
    const session = await RawSession.open(switchboard.url, undefined, {}, token);
    const stream = await session.listen();
    const keepAlives = [];
    for await (const chunk of stream.response.iterator({ destroyOnReturn: false })) {
      keepAlives.push(chunk);
      if (keepAlives.length === (3 * SLOW_MS) / 20) break;
    }
    expect(stream.response.destroyed).toBe(false);
    await session.end();
    await stream.ended;
  });

  describe('new certificates', () => {
    const fingerprints = () => [identity!, next!].map(fingerprintOf);

    it('replace the files by renaming, and open connections stay', async () => {
      await using own = await temporaryFolder();
      await writePair(own.path, identity!);
      await writePair(join(own.path, 'next'), next!);
      await using running = await start(own.path);
      const [old, renewed] = fingerprints();
      expect(await served(running)).toBe(old);
      const session = await RawSession.open(running.url, undefined, {}, await tokenHeader(running.home));
      const stream = await session.listen();
      for (const name of ['cert.pem', 'key.pem']) {
        await rename(join(own.path, 'next', name), join(own.path, name));
      }
      await expect.poll(() => served(running)).toBe(renewed);
      await session.callText('add', { name: 'later' });
      await stream.message(({ method }) => method === 'notifications/tools/list_changed');
      expect(running.events.filter(({ event }) => event === 'warning')).toEqual([]);
    });

    it('are the targets of links, as those of certbot', async () => {
      await using own = await temporaryFolder();
      const [archive, live] = [join(own.path, 'archive'), join(own.path, 'live')];
      await Promise.all([writePair(join(archive, '1'), identity!), writePair(join(archive, '2'), next!)]);
      await mkdir(live);
      const point = async (version: string) => {
        for (const name of ['cert.pem', 'key.pem']) {
          await symlink(join('../archive', version, name), join(live, `${name}.new`));
          await rename(join(live, `${name}.new`), join(live, name));
        }
      };
      await point('1');
      await using running = await start(live);
      const [old, renewed] = fingerprints();
      expect(await served(running)).toBe(old);
      await point('2');
      await expect.poll(() => served(running)).toBe(renewed);
    });

    it('come with a link of their folder, as those of Kubernetes', async () => {
      await using own = await temporaryFolder();
      await Promise.all([writePair(join(own.path, 'v1'), identity!), writePair(join(own.path, 'v2'), next!)]);
      for (const name of ['cert.pem', 'key.pem']) {
        await symlink(join('..data', name), join(own.path, name));
      }
      const point = async (version: string) => {
        await symlink(version, join(own.path, '..data.new'));
        await rename(join(own.path, '..data.new'), join(own.path, '..data'));
      };
      await point('v1');
      await using running = await start(own.path);
      const [old, renewed] = fingerprints();
      expect(await served(running)).toBe(old);
      await point('v2');
      await expect.poll(() => served(running)).toBe(renewed);
    });

    it.each([
      ['of another key', () => next!.cert],
      ['that is none', () => 'nonsense'],
      ['that is empty', () => ''],
    ])('do not replace the old one with one %s', async (_what, broken) => {
      await using own = await temporaryFolder();
      await writePair(own.path, identity!);
      await using running = await start(own.path);
      const [old, renewed] = fingerprints();
      await writeFile(join(own.path, 'cert.pem'), broken());
      const { message } = await running.event(({ event }) => event === 'warning');
      expect(message).toMatch(/cert\.pem.*The previous certificate stays in effect\./s);
      expect(await served(running)).toBe(old);
      // Other files in the folder do not repeat the warning.
      await writeFile(join(own.path, 'other'), '');
      await writePair(own.path, next!);
      await expect.poll(() => served(running)).toBe(renewed);
      expect(running.events.filter(({ event }) => event === 'warning')).toHaveLength(1);
    });
  });

  it.each([
    ['cert.pem', undefined, /The certificate of TLS cannot be read: ENOENT.*cert\.pem/],
    ['key.pem', undefined, /The key of TLS cannot be read: ENOENT.*key\.pem/],
    ['cert.pem', 'nonsense', /The certificate of TLS, .*cert\.pem, is not in PEM format/],
    ['key.pem', '', /The key of TLS, .*key\.pem, is not in PEM format/],
    [
      'cert.pem',
      '-----BEGIN CERTIFICATE-----',
      /certificate .*cert\.pem and the key .*key\.pem cannot be used: /,
    ],
    ['key.pem', next?.key, /certificate .*cert\.pem and the key .*key\.pem cannot be used: .*mismatch/],
  ])('needs both files at the start: %s (%#)', async (name, contents, message) => {
    await using own = await temporaryFolder();
    await writePair(own.path, identity!);
    await rename(join(own.path, name), join(own.path, 'old'));
    if (contents !== undefined) await writeFile(join(own.path, name), contents);
    const settings = { tls: { cert: 'cert.pem', key: 'key.pem' } };
    await writeFile(join(own.path, 'mcp.json'), JSON.stringify({ mcpServers: {}, switchboard: settings }));
    const words = ['up', '--port', '0', '--config', join(own.path, 'mcp.json')];
    const env = { SWITCHBOARD_HOME: own.path, DATABASE_URL: 'none' };
    const { code, stderr } = await runCli(words, { env });
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });

  it('explains when all connections are taken', async () => {
    await using small = await start(folder, { maxConnections: 2 }, {});
    const own = await tokenHeader(small.home);
    const status = `${small.baseUrl}/api/v1/status`;
    const ask = () => exchange(status, { method: 'GET', headers: own });
    const sockets = [];
    const lines = [`host: ${new URL(small.baseUrl).host}`, `authorization: ${own.authorization}`];
    for (let count = 0; count < 2; count++) {
      const socket = await openSecure(small);
      socket.write(`GET /api/v1/status HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
      await once(socket, 'data');
      sockets.push(socket);
    }
    expect(await ask()).toMatchObject({
      status: 503,
      json: { error: { data: { code: 'too_many_connections' } } },
    });
    sockets[0]!.destroy();
    for (let code = 503; code !== 200; ) ({ status: code } = await ask());
    sockets[1]!.destroy();
  });

  describe('other users', () => {
    beforeEach((test) => requireOtherUser(test));

    it('cannot keep the owner out with connections that never begin a handshake', async () => {
      await using small = await start(folder, { maxConnections: 4 }, {});
      const child = startAsOther(
        `const { connect } = require('node:net');
        const open = () => new Promise((resolve) => {
          const socket = connect(${portOf(small)}, '127.0.0.1', () => resolve(socket));
          socket.on('error', () => {});
        });
        Promise.all(Array.from({ length: 250 }, open)).then(() => console.log('open'));
        process.stdin.resume();`,
      );
      const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
      expect((await lines.next()).value).toBe('open');
      expect((await health(small)).status).toBe(200);
      child.kill();
      await once(child, 'exit');
    });
  });
});

function fingerprintOf({ cert }: Identity): string {
  return new X509Certificate(cert).fingerprint256;
}

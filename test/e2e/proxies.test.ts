import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createProxy } from 'proxy';
import { describe, expect, it } from 'vitest';
import { HttpBackend } from '../helpers/http-backend.ts';
import { makeIdentity } from '../helpers/identity.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';

/** This machine under an address that is not recognized as local, so that proxies apply. */
const elsewhere = (url: string) => url.replace('127.0.0.1', '0.0.0.0');

async function openProxy(authorization?: string) {
  const asked: string[] = [];
  const server = createProxy(createServer());
  server.authenticate = ({ headers }: IncomingMessage) =>
    authorization === undefined || headers['proxy-authorization'] === authorization;
  server.prependListener('request', ({ method, url }: IncomingMessage) => asked.push(`${method} ${url}`));
  server.prependListener('connect', ({ method, url }: IncomingMessage) => asked.push(`${method} ${url}`));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    asked,
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const large = 'x'.repeat(300_000);

/** The length of the echoed text. */
async function echoed(session: RawSession, tool: string): Promise<number> {
  const { text } = JSON.parse(await session.callText(tool, { text: large })) as { text: string };
  return text.length;
}

describe('through a proxy', () => {
  it.each(['http', 'sse'] as const)(
    'a server over %s is reached, and local ones are reached directly',
    async (transport) => {
      await using proxy = await openProxy(`Basic ${btoa('me:secret word')}`);
      await using far = await HttpBackend.start('far', { transport });
      await using near = await HttpBackend.start('near', { transport });
      const type = transport;
      await using switchboard = await startSwitchboard(
        { far: { type, url: elsewhere(far.url) }, near: { type, url: near.url } },
        {},
        { env: { http_proxy: `http://me:secret%20word@127.0.0.1:${proxy.port}`, no_proxy: 'example.org' } },
      );
      const session = await RawSession.open(switchboard.url);
      await session.toolNames();
      for (const server of ['far', 'near']) {
        expect(await echoed(session, `${server}__echo`)).toBe(large.length);
      }
      const { origin } = new URL(elsewhere(far.url));
      expect(proxy.asked.filter((line) => line.startsWith(`POST ${origin}/`))).not.toEqual([]);
      expect(proxy.asked.join()).not.toContain(new URL(near.url).port);
    },
  );

  it('stdio servers get the proxy variables unless that is disabled', async () => {
    const env = { HTTPS_PROXY: 'http://127.0.0.1:1', no_proxy: 'a.example', SSL_CERT_FILE: '/nowhere' };
    const variables = [...Object.keys(env), 'SECRET_OF_OURS', 'HTTP_PROXY'];
    const script = `console.error('env ' + JSON.stringify(${JSON.stringify(variables)}.map((name) => process.env[name] ?? null)))`;
    const telling = { command: process.execPath, args: ['-e', script], env: { HTTP_PROXY: 'its own' } };
    const seen = async (settings: object) => {
      await using switchboard = await startSwitchboard(
        { telling },
        { startup: 'parallel', ...settings },
        { env: { ...env, HTTP_PROXY: 'ours', SECRET_OF_OURS: 'x' } },
      );
      const failed = await switchboard.event(({ name, error }) => name === 'telling' && error !== null);
      return JSON.parse(/env (\[.*\])/.exec(String(failed.error))![1]!) as (string | null)[];
    };
    expect(await seen({})).toEqual([...Object.values(env), null, 'its own']);
    expect(await seen({ inheritNetwork: false })).toEqual([null, null, null, null, 'its own']);
  });

  it('a server reports what is wrong with the proxy', async () => {
    await using proxy = await openProxy('Basic other');
    const start = (address: string) =>
      startSwitchboard(
        { far: { url: 'https://0.0.0.0:1/mcp' } },
        { startup: 'parallel' },
        { env: { https_proxy: address } },
      );
    const errorOf = async (address: string) => {
      await using switchboard = await start(address);
      const { error } = await switchboard.event(({ name, error: why }) => name === 'far' && why !== null);
      return String(error);
    };
    const label = `http://127.0.0.1:${proxy.port}`;
    expect(await errorOf(`http://me:wrong-password@127.0.0.1:${proxy.port}`)).toContain(
      `https://0.0.0.0:1 cannot be reached: through the proxy ${label}: it responded with HTTP 407 Proxy Authentication Required`,
    );
    expect(await errorOf('http://127.0.0.1:1')).toContain(
      'cannot be reached: through the proxy http://127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1',
    );
    expect(await errorOf('socks5://127.0.0.1:1')).toContain(
      'The variable https_proxy is not the URL of a proxy',
    );
  });
});

const identity = makeIdentity();

describe.skipIf(identity === undefined)('a server behind TLS (needs openssl for its certificate)', () => {
  it.each(['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'])(
    'is reached through a tunnel and trusted with %s',
    async (variable) => {
      const folder = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
      await writeFile(join(folder, 'authority.pem'), `of somebody\n${identity!.cert}`);
      const trusted = variable === 'SSL_CERT_DIR' ? folder : join(folder, 'authority.pem');
      await using proxy = await openProxy();
      await using far = await HttpBackend.start('far', { identity: identity! });
      const url = elsewhere(far.url);
      await using switchboard = await startSwitchboard(
        { far: { url } },
        {},
        { env: { https_proxy: `http://127.0.0.1:${proxy.port}`, [variable]: trusted } },
      );
      const session = await RawSession.open(switchboard.url);
      await session.toolNames();
      expect(await echoed(session, 'echo')).toBe(large.length);
      expect(new Set(proxy.asked)).toEqual(new Set([`CONNECT ${new URL(url).host}`]));
      await rm(folder, { recursive: true });
    },
  );
});

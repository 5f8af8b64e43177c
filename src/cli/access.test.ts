import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../../test/helpers/free-port.ts';
import { listen, serveHttp } from '../../test/helpers/http-exchange.ts';
import { makeIdentity } from '../../test/helpers/identity.ts';
import { home } from '../home.ts';
import { openToken, tokenPath } from '../identity/token.ts';
import { passFor } from './access.ts';
import { callApi } from './api.ts';
import { UnreachableError } from './exit.ts';
import { checkReachable } from './mcp-client.ts';
import { noSwitchboard } from './reach.ts';

const key = 'sbk_0123456789ab0123456789012345678901234567890123456789012';
let token: string;
let complaints: string[];

beforeEach(() => {
  const home = mkdtempSync(join(tmpdir(), 'switchboard-test-'));
  vi.stubEnv('SWITCHBOARD_HOME', home);
  vi.stubEnv('SWITCHBOARD_KEY', '');
  token = openToken(home, () => {});
  complaints = [];
  const spy = vi
    .spyOn(process.stderr, 'write')
    .mockImplementation((chunk) => complaints.push(String(chunk)) > 0);
  onTestFinished(() => {
    spy.mockRestore();
    vi.unstubAllEnvs();
    rmSync(home, { recursive: true });
  });
});

async function failure(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => new Error('it did not fail'),
    (error: Error) => error,
  );
}

describe('the key in SWITCHBOARD_KEY', () => {
  it('is sent instead of the token', async () => {
    const { url } = await serveHttp((_request, response) => response.end());
    const headersOf = async () => (await passFor(url.origin)).headers;
    expect(await headersOf()).toEqual({ authorization: `Bearer ${token}` });
    vi.stubEnv('SWITCHBOARD_KEY', ` ${key}\n`);
    expect(await headersOf()).toEqual({ authorization: `Bearer ${key}` });
    expect(complaints).toEqual([]);
  });

  it('is sent to other machines, with a warning if others can read it on the way', async () => {
    expect(await passFor('http://192.0.2.1:7400')).toEqual({ headers: {} });
    vi.stubEnv('SWITCHBOARD_KEY', key);
    const headers = { authorization: `Bearer ${key}` };
    expect(await passFor('https://192.0.2.1')).toEqual({ headers });
    expect(await passFor('http://127.0.0.1:9')).toEqual({ headers });
    expect(complaints).toEqual([]);
    for (const _again of [1, 2]) expect(await passFor('http://192.0.2.1:7400')).toEqual({ headers });
    expect(complaints.join('')).toMatch(
      /^warning: .*http:\/\/192\.0\.2\.1:7400 unencrypted.*https:\/\/\.\n$/,
    );
  });

  it('is not repeated in the error if it cannot be a key', async () => {
    vi.stubEnv('SWITCHBOARD_KEY', 'hunter2 hunter2');
    const { message } = await failure(passFor('https://192.0.2.1'));
    expect(message).toContain('SWITCHBOARD_KEY is no key');
    expect(message).not.toContain('hunter2');
  });

  it.each([
    ['', 'Commands send the key in the environment variable SWITCHBOARD_KEY.'],
    [key, 'The command sent the key in SWITCHBOARD_KEY: set it to a valid key, or unset it.'],
  ])('is named if a request is refused', async (given, advice) => {
    vi.stubEnv('SWITCHBOARD_KEY', given);
    const { url } = await serveHttp((_request, response) => {
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { code: 'unauthorized', message: 'Who is it?' } }));
    });
    const error = await failure(callApi(url.origin, 'GET', '/whoami'));
    expect(error).toMatchObject({ code: 'unauthorized', message: `Who is it?\n       ${advice}` });
  });
});

const identity = makeIdentity();

describe.skipIf(identity === undefined)('TLS (the test certificate needs openssl)', () => {
  async function serve() {
    const seen: (string | undefined)[] = [];
    const server = createServer({ ...identity }, (request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
    server.on('tlsClientError', () => {});
    return { url: (await listen(server, 'https')).url.origin, seen };
  }

  it('of an own program on 127.0.0.1 is trusted, whatever its certificate', async () => {
    const { url, seen } = await serve();
    await checkReachable(url);
    expect(seen).toEqual([undefined]);
    expect(await callApi(url, 'GET', '/status')).toEqual({});
    expect(seen).toEqual([undefined, `Bearer ${token}`]);
  });

  it('of anything else needs a certificate that is trusted', async () => {
    const { url, seen } = await serve();
    vi.stubEnv('SWITCHBOARD_KEY', key);
    const error = await failure(callApi(url.replace('127.0.0.1', 'localhost'), 'GET', '/status'));
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error.message).toMatch(
      /^The certificate of https:\/\/localhost:\d+ is not trusted: .*127\.0\.0\.1:\d+ instead\.$/,
    );
    rmSync(tokenPath(home()));
    const other = await failure(callApi(url.replace('127.0.0.1', 'localhost'), 'GET', '/status'));
    expect(other.message).toMatch(/Nothing was sent\. .*NODE_EXTRA_CA_CERTS=cert\.pem$/);
    expect(other.message).not.toContain('127.0.0.1');
    expect(seen).toEqual([]);
  });

  it('is named if the address has http://', async () => {
    const { url } = await serve();
    const plain = url.replace('https:', 'http:');
    for (const request of [() => callApi(plain, 'GET', '/status'), () => checkReachable(plain)]) {
      const error = await failure(request());
      expect(error).toBeInstanceOf(UnreachableError);
      expect(error.message).toBe(`The program at ${plain} uses TLS: use ${url} instead.`);
    }
  });

  it('is not expected where the address has https:// by mistake', async () => {
    const { url } = await serveHttp((_request, response) => response.end());
    const error = await failure(callApi(url.origin.replace('http:', 'https:'), 'GET', '/status'));
    expect(error.message).toMatch(/does not use TLS: use http:\/\/127\.0\.0\.1:\d+ instead\.$/);
  });
});

it('follows no redirection', async () => {
  const { url } = await serveHttp((_request, response) => {
    response.writeHead(301, { location: 'https://sb.example/api' }).end();
  });
  for (const request of [() => callApi(url.origin, 'GET', '/status'), () => checkReachable(url.origin)]) {
    expect((await failure(request())).message).toMatch(
      /redirects to another address: use https:\/\/sb\.example instead\.$/,
    );
  }
});

it('says why another machine cannot be reached', async () => {
  const here = await failure(checkReachable(`http://127.0.0.1:${await freePort()}`));
  expect(here.message).toContain('Start one with: switchboard up');
  const there = noSwitchboard('https://sb.example', new Error('connect ECONNREFUSED'));
  expect(there.message).toBe('There is no Switchboard at https://sb.example: connect ECONNREFUSED');
});

import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bridgeProgram, startBridge } from '../helpers/bridge.ts';
import { runCli } from '../helpers/cli.ts';
import { requireOtherUser, startAsOther } from '../helpers/other-user.ts';
import { initialize } from '../helpers/raw-http.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';

const modernList = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/list',
  params: {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
};

let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'switchboard-token-'));
});

afterEach(() => rm(home, { recursive: true }));

function run(...words: string[]) {
  return runCli(words, { env: { SWITCHBOARD_HOME: home } });
}

describe('`switchboard token`', () => {
  it('creates one token that only its user can read, even if many processes ask', async () => {
    const made = await Promise.all([run('token'), run('token'), run('token')]);
    const tokens = new Set(made.map(({ stdout }) => stdout));
    expect(tokens.size).toBe(1);
    const [token = ''] = tokens;
    expect(token).toMatch(/^[\w-]{43}\n$/);
    expect(await readFile(join(home, 'token'), 'utf8')).toBe(token);
    expect((await stat(join(home, 'token'))).mode & 0o777).toBe(0o600);
    expect(await readdir(home)).toEqual(['token']);
  });

  it('prints the source of the token, and that no Switchboard uses it yet', async () => {
    const path = join(home, 'token');
    const unknown = 'No Switchboard was started with this home';
    const [made, read] = [await run('token'), await run('token')];
    expect(made.stderr).toContain(`The token is new, in ${path}.`);
    expect(made.stderr).toContain(unknown);
    expect(read.stderr).toContain(`The token is from ${path}.`);
    expect(read.stderr).toContain(unknown);
    await using _switchboard = await startSwitchboard({}, {}, { database: 'none', home });
    const known = await run('token');
    expect(known.stderr).toContain(`The token is from ${path}.`);
    expect(known.stderr).not.toContain(unknown);
    expect(known.stdout).toBe(made.stdout);
  });

  it('makes a token that others can read private, and reports it', async () => {
    const before = await run('token');
    await chmod(join(home, 'token'), 0o644);
    const after = await run('token');
    expect(after.stdout).toBe(before.stdout);
    expect(after.stderr).toContain('could be read by other users');
    expect((await stat(join(home, 'token'))).mode & 0o777).toBe(0o600);
  });

  it('rejects any other content of the file', async () => {
    await writeFile(join(home, 'token'), 'secret\n', { mode: 0o600 });
    const { code, stdout, stderr } = await run('token');
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('delete the file');
    expect(stderr).not.toContain('secret');
  });
});

describe('a Switchboard', () => {
  it('starts without a token if it cannot create one, and reports it', async () => {
    await writeFile(join(home, 'token'), '', { mode: 0o600 });
    await using switchboard = await startSwitchboard({}, {}, { database: 'none', home });
    await switchboard.event(({ message }) => String(message).includes('There is no token'));
    const { code } = await run('ls', '--url', switchboard.baseUrl);
    expect(code).toBe(0);
  });

  it('creates the token, and hides it from the processes that it starts', async () => {
    await using switchboard = await startSwitchboard({}, {}, { database: 'none', home });
    const token = (await readFile(join(home, 'token'), 'utf8')).trim();
    const { pid } = switchboard.process;
    const seen = await Promise.all(
      ['cmdline', 'environ'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8')),
    );
    expect(seen.join()).not.toContain(token);
    expect((await run('token')).stdout.trim()).toBe(token);
  });
});

/** A local address that accepts requests and never responds. */
async function listen() {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    response.writeHead(request.url === '/healthz' ? 200 : 418).end();
  });
  // The connection stays open until the command closes it.
  server.keepAliveTimeout = 3_600_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, requests, port: (server.address() as AddressInfo).port };
}

describe('commands', () => {
  const commands = [
    ['ls'],
    ['ls', 'tools'],
    ['watch'],
    ['logs', 'box'],
    ['chat', 'default', 'hello'],
    ['secret', 'rotate'],
  ];

  it.each(commands)('send the token to a Switchboard of the same user: %s', async (...words) => {
    const token = (await run('token')).stdout.trim();
    const { server, requests, port } = await listen();
    const { stdout, stderr } = await run(...words, '--url', `http://127.0.0.1:${port}`);
    const asked = requests.filter(({ url }) => url !== '/healthz');
    expect(asked.length).toBeGreaterThan(0);
    for (const { headers } of asked) expect(headers.authorization).toBe(`Bearer ${token}`);
    for (const { headers } of requests.filter(({ method }) => method === 'POST')) {
      expect(headers['content-type']).toBe('application/json');
    }
    expect(stdout + stderr).not.toContain(token);
    requests.length = 0;
    await run(...words, '--url', `http://localhost:${port}`);
    for (const { headers } of requests) expect(headers).not.toHaveProperty('authorization');
    server.close();
  });

  it.each([initialize('2025-11-25', 1), modernList])('send the token from stdio too: %o', async (message) => {
    const token = (await run('token')).stdout.trim();
    const { server, requests, port } = await listen();
    await using bridge = startBridge(bridgeProgram(`http://127.0.0.1:${port}`, home, null));
    bridge.say(message);
    await bridge.answerTo(1);
    const asked = requests.filter(({ url }) => url !== '/healthz');
    expect(asked.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${token}`]);
    server.close();
  });

  /** Records what another user receives who listens on the port. */
  async function listenAsOther(port = 0) {
    const child = startAsOther(
      `const server = require('node:http').createServer((request, response) => {
        let body = '';
        request.on('data', (chunk) => { body += chunk; });
        request.on('end', () => {
          console.log(JSON.stringify({ url: request.url, headers: request.headers, body }));
          response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
        });
      });
      server.on('error', () => setTimeout(listen, 10));
      server.on('listening', () => console.log(server.address().port));
      function listen() { server.listen(Number(process.argv[1]), '127.0.0.1'); }
      listen();`,
      String(port),
    );
    const lines = createInterface({ input: child.stdout! });
    const heard: string[] = [];
    const [own] = (await once(lines, 'line')) as [string];
    lines.on('line', (line) => heard.push(line));
    const end = async () => {
      child.kill();
      await once(child, 'close');
    };
    return { port: own, heard, end };
  }

  it.for([['ls', 'tools'], ['call', 'x'], ['stdio']])(
    'do not send the token to another user who listens at the address, and report it: %s',
    async (words, test) => {
      requireOtherUser(test);
      await run('token');
      const other = await listenAsOther();
      const { stderr } = await run(...words, '--url', `http://127.0.0.1:${other.port}`);
      await other.end();
      expect(other.heard.length).toBeGreaterThan(0);
      expect(other.heard.join()).not.toContain('authorization');
      expect(stderr).toContain(`The program at 127.0.0.1:${other.port} belongs to another user`);
      expect(stderr).toContain('do not trust its responses');
    },
  );

  it.for(['127.0.0.1', 'localhost'])('send no API request to another user at %s', async (host, test) => {
    requireOtherUser(test);
    const other = await listenAsOther();
    const address = `http://${host}:${other.port}`;
    const added = await run(
      'server',
      'add',
      'box',
      '--url',
      address,
      '-e',
      'KEY=hunter2hunter2',
      '--',
      'node',
    );
    await other.end();
    expect(other.heard).toEqual([]);
    expect(added.code).toBe(3);
    expect(added.stderr).toContain('belongs to another user');
  });

  const questions = [
    { era: 'legacy', first: initialize('2025-11-25', 1), next: { jsonrpc: '2.0', id: 2, method: 'ping' } },
    { era: 'modern', first: modernList, next: { ...modernList, id: 2 } },
  ];
  it.for(questions)(
    'do not send the token to another user who takes over the port: $era',
    async ({ first, next }, test) => {
      requireOtherUser(test);
      const switchboard = await startSwitchboard({}, {}, { database: 'none', home });
      await using bridge = startBridge(bridgeProgram(switchboard.baseUrl, home, switchboard.configPath));
      bridge.say(first);
      await bridge.answerTo(1);
      await switchboard[Symbol.asyncDispose]();
      const other = await listenAsOther(Number(new URL(switchboard.baseUrl).port));
      bridge.say(next);
      await bridge.answerTo(2);
      await other.end();
      expect(other.heard.filter((request) => !request.includes('/healthz'))).toEqual([]);
    },
  );
});

import { execFileSync } from 'node:child_process';
import { chown, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RunningCli, startCli } from '../helpers/cli.ts';
import { exchangeAsOther, requireOtherUser } from '../helpers/other-user.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';

let home: string;
let started: RunningCli[];

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'switchboard-odd-'));
  started = [];
});

afterEach(async () => {
  for (const cli of started) await cli[Symbol.asyncDispose]();
  await rm(home, { recursive: true });
});

function start(...words: string[]): RunningCli {
  const cli = startCli(words, { SWITCHBOARD_HOME: home, DATABASE_URL: 'none' });
  started.push(cli);
  return cli;
}

const odd = [
  ['a folder', (path: string) => mkdir(path, { mode: 0o755 })],
  ['a pipe', async (path: string) => void execFileSync('mkfifo', ['-m', '644', path])],
  ['a device', (path: string) => symlink('/dev/zero', path)],
] as const;

describe('a token file', () => {
  it.each(odd)('that is %s is rejected by name, and stays unchanged', async (kind, make) => {
    const path = join(home, 'token');
    await make(path);
    const before = await stat(path);
    const { code, stderr } = await start('token').finished;
    expect([code, stderr]).toEqual([
      2,
      `error: ${path} is ${kind}, not a file. Delete it and restart to create a new token.\n`,
    ]);
    expect((await stat(path)).mode).toBe(before.mode);
  });

  it('that is a pipe blocks neither the start and exit of Switchboard nor a command', async () => {
    execFileSync('mkfifo', [join(home, 'token')]);
    const up = start('up', '--config', await configuration(), '--port', '0', '--json');
    const { message } = JSON.parse(await up.lines.first((line) => line.includes('"warning"')));
    expect(message).toContain(`The access token could not be opened: ${join(home, 'token')} is a pipe`);
    const listening = JSON.parse(await up.lines.first((line) => line.includes('"listening"')));
    expect((await start('ls', '--url', listening.base_url).finished).code).toBe(0);
    up.process.kill('SIGTERM');
    expect((await up.finished).code).toBe(0);
  });

  it('of another user grants no access, even if root runs Switchboard', async (test) => {
    requireOtherUser(test);
    const [path, token] = [join(home, 'token'), 'x'.repeat(43)];
    await writeFile(path, token, { mode: 0o600 });
    await chown(path, 65_534, 65_534);
    await using switchboard = await startSwitchboard({}, {}, { home });
    const answer = await exchangeAsOther(`${switchboard.baseUrl}/api/v1/status`, {
      method: 'GET',
      headers: { authorization: `Bearer ${token}` },
    });
    expect(answer.status).toBe(401);
    const refused = `${path} belongs to another user (65534), who knows what is in it. Delete it and restart to create a new token.`;
    await switchboard.event(({ message }) => String(message).endsWith(refused));
    const { code, stderr } = await start('token').finished;
    expect([code, stderr]).toEqual([2, `error: ${refused}\n`]);
  });
});

describe('a configuration file', () => {
  it.each(odd)('that is %s is rejected by `up`', async (kind, make) => {
    const path = join(home, 'mcp.json');
    await make(path);
    const { code, stderr } = await start('up', '--config', path, '--port', '0').finished;
    expect([code, stderr]).toEqual([
      2,
      `error: cannot read ${path}: it is ${kind}; give the path of a file\n`,
    ]);
  });

  it('that is a pipe is read to its end by `check`', async () => {
    const path = join(home, 'mcp.json');
    execFileSync('mkfifo', [path]);
    const check = start('check', path);
    await writeFile(path, '{"mcpServers": {}}');
    expect(await check.finished).toEqual({ code: 0, stderr: '' });
  });
});

async function configuration(): Promise<string> {
  const path = join(home, 'mcp.json');
  await writeFile(path, '{"mcpServers": {}}');
  return path;
}

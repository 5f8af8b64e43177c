import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { runCli } from '../helpers/cli.ts';
import { connectStdio, textOf, toolNamesOnce } from '../helpers/clients.ts';
import { freePort } from '../helpers/free-port.ts';
import { isRunning, untilGone } from '../helpers/processes.ts';
import { mainProgram } from '../helpers/programs.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

/** Without a configuration in its home, a bridge cannot start Switchboard. */
async function temporaryHome() {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-bridge-'));
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
}

function connectBridge(url: string, { folder }: { folder: string }, config = join(folder, 'mcp.json')) {
  return connectStdio({
    command: process.execPath,
    args: [mainProgram, 'stdio', '--url', url, '--config', config],
    env: { ...process.env, SWITCHBOARD_HOME: folder } as Record<string, string>,
  });
}

/** The pid of the Switchboard that the bridge found or started. */
async function ownerOf({ client }: Awaited<ReturnType<typeof connectBridge>>): Promise<number> {
  return JSON.parse(textOf(await client.callTool({ name: 'whoami' }))).parent;
}

describe('switchboard stdio', () => {
  it('does not serve the configuration of another Switchboard', async () => {
    await using home = await temporaryHome();
    const [own, link] = ['mcp.json', 'link.json'].map((name) => join(home.folder, name));
    await writeFile(own!, JSON.stringify({ mcpServers: { box: fixtureServer('toolbox') } }));
    await using switchboard = await startSwitchboard({});
    const env = { SWITCHBOARD_HOME: switchboard.home };
    expect(await runCli(['stdio', '--url', switchboard.baseUrl, '--config', own!], { env })).toEqual({
      code: 2,
      stdout: '',
      stderr:
        `error: The Switchboard at ${switchboard.baseUrl} runs with ${switchboard.configPath}, not with ${own}. ` +
        'Leave out --config to use it as it is, or set --url to another port to start a second one.\n',
    });
    await symlink(switchboard.configPath, link!);
    expect(await runCli(['stdio', '--url', switchboard.baseUrl, '--config', link!], { env })).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
  });

  it('answers piped requests even if the pipe closes early', async () => {
    await using switchboard = await startSwitchboard({ box: fixtureServer('toolbox') });
    const bridge = spawn(process.execPath, [mainProgram, 'stdio', '--url', switchboard.baseUrl], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const clientInfo = { name: 'pipe', version: '1' };
    const messages = [
      {
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo },
      },
      { method: 'notifications/initialized' },
      { id: 2, method: 'tools/call', params: { name: 'echo', arguments: { text: 'piped' } } },
    ];
    bridge.stdin.end(messages.map((message) => JSON.stringify({ jsonrpc: '2.0', ...message })).join('\n'));
    const answers = (await text(bridge.stdout))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ id }) => id !== undefined);
    expect(answers).toMatchObject([
      { id: 1, result: { protocolVersion: '2025-06-18' } },
      { id: 2, result: { content: [{ text: 'piped' }] } },
    ]);
  });

  it('sends no response to a call that its client cancelled', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      box: fixtureServer('hangs-in-call', witness.env('box')),
    });
    const bridge = spawn(process.execPath, [mainProgram, 'stdio', '--url', switchboard.baseUrl], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const printed = text(bridge.stdout);
    const say = (message: object) =>
      void bridge.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const clientInfo = { name: 'pipe', version: '1' };
    say({
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
    });
    say({ method: 'notifications/initialized' });
    say({ id: 2, method: 'tools/call', params: { name: 'hang' } });
    await witness.sees('box', 'tools/call');
    say({ method: 'notifications/cancelled', params: { requestId: 2 } });
    await witness.sees('box', 'notifications/cancelled');
    say({ id: 3, method: 'tools/call', params: { name: 'echo', arguments: { text: 'after it' } } });
    bridge.stdin.end();
    const ids = (await printed)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).id)
      .filter((id) => id !== undefined);
    expect(ids).toEqual([1, 3]);
  });

  it('starts a Switchboard if none runs, which other clients share and which keeps running', async () => {
    await using witness = await Witness.open();
    await using home = await temporaryHome();
    await writeFile(
      join(home.folder, 'mcp.json'),
      JSON.stringify({
        mcpServers: { recorder: fixtureServer('reports-messages', witness.env('recorder')) },
      }),
    );
    const url = `http://127.0.0.1:${await freePort()}`;
    const started = new Set<number>();
    try {
      await using first = await connectBridge(url, home);
      const owner = await ownerOf(first);
      started.add(owner);
      {
        await using second = await connectBridge(url, home);
        expect(await ownerOf(second)).toBe(owner);
      }
      await first.client.close();
      expect((await fetch(`${url}/healthz`)).status).toBe(200);

      await using third = await connectBridge(url, home);
      expect(await ownerOf(third)).toBe(owner);
      // The same client continues with another Switchboard.
      process.kill(owner, 'SIGTERM');
      await untilGone(owner);
      const next = await ownerOf(third);
      started.add(next);
      expect(next).not.toBe(owner);
    } finally {
      for (const pid of started) if (isRunning(pid)) process.kill(pid, 'SIGTERM');
      for (const pid of started) await untilGone(pid);
    }
  });

  it('survives a restart of Switchboard, with its log level and subscriptions', async () => {
    await using witness = await Witness.open();
    const servers = {
      growing: fixtureServer('grows-lists'),
      notes: fixtureServer('notes', { NOTES_OF: 'all' }),
      recorder: fixtureServer('reports-messages', witness.env('recorder')),
    };
    const args = ['--port', String(await freePort())];
    await using home = await temporaryHome();
    const before = await startSwitchboard(servers, {}, { args });
    await using connected = await connectBridge(before.baseUrl, home, before.configPath);
    const { client, notifications } = connected;
    await client.subscribeResource({ uri: 'resource://notes/note://todo' });
    await client.subscribeResource({ uri: 'resource://notes/note://done' });
    await client.unsubscribeResource({ uri: 'resource://notes/note://done' });
    await client.setLoggingLevel('alert');
    await before.stop();
    // The Switchboard that the bridge starts fails, and the one that it waits for does not run yet.
    const log = join(home.folder, 'switchboard.log');
    await expect.poll(() => readFile(log, 'utf8').catch(() => '')).toContain('error');

    await using _after = await startSwitchboard(servers, {}, { args });
    const told = notifications.next(({ method }) => method === 'notifications/tools/list_changed');
    const result = await client.callTool({ name: 'grow', arguments: { name: 'after' } });
    expect(textOf(result)).toBe('grown by after');
    await told;
    await toolNamesOnce(connected, (names) => names.includes('after'));
    await client.callTool({ name: 'touch', arguments: { uri: 'note://done' } });
    await client.callTool({ name: 'touch', arguments: { uri: 'note://todo' } });
    const { params } = await notifications.first(
      ({ method }) => method === 'notifications/resources/updated',
    );
    expect(params).toEqual({ uri: 'resource://notes/note://todo' });
    await witness.severalOf('recorder', 'message', 2, ({ method }) => method === 'logging/setLevel');
  });

  it('fails calls in flight when Switchboard exits', async () => {
    await using witness = await Witness.open();
    await using home = await temporaryHome();
    const recorder = fixtureServer('reports-messages', witness.env('recorder'));
    const before = await startSwitchboard({ recorder });
    await using connected = await connectBridge(before.baseUrl, home, before.configPath);
    const underWay = connected.client
      .callTool({ name: 'hold', arguments: { order: 'never' } })
      .catch((error: unknown) => error);
    await witness.sees('recorder', 'message', ({ method }) => method === 'tools/call');
    await before.stop();
    expect(await underWay).toBeInstanceOf(Error);
    expect(
      witness.seenBy('recorder', 'message').filter(({ method }) => method === 'tools/call'),
    ).toHaveLength(1);
  });
});

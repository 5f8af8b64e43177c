import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli, temporaryFolder } from '../helpers/cli.ts';
import { freePort } from '../helpers/free-port.ts';
import { setUp } from '../helpers/set-up.ts';
import {
  fixtureServer,
  type RunningSwitchboard,
  referenceServer,
  startSwitchboard,
} from '../helpers/switchboard.ts';

let switchboard: RunningSwitchboard;
let nobody: string;

setUp(async (use) => {
  switchboard = use(
    await startSwitchboard(
      {
        box: fixtureServer('toolbox'),
        everything: referenceServer('everything'),
        dying: fixtureServer('fails-to-start'),
      },
      // No failed start is retried during the tests.
      { backoffFirstMs: 3_600_000 },
    ),
  );
  nobody = `http://127.0.0.1:${await freePort()}`;
});

const run = (...words: string[]) => runCli([...words, '--url', switchboard.baseUrl]);

describe('switchboard ls', () => {
  it('shows servers with their state, tools and errors', async () => {
    const { code, stdout, stderr } = await run('ls');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^box +ready +stdio +8 tools$/m);
    expect(stdout).toMatch(/^dying +backing off +stdio +Server "dying" .*API_TOKEN is not set.*next try in/m);
  });

  it.each([
    ['tools', /^box__echo +box +The tool echo\.$/m],
    ['resources', /^resource:\/\/everything\/demo:.* +everything +/m],
    ['prompts', /^simple-prompt +everything +/m],
  ])('shows %s with their server', async (what, line) => {
    const { code, stdout } = await run('ls', what);
    expect(code).toBe(0);
    expect(stdout).toMatch(line);
  });

  it.each([
    [
      'servers',
      {
        name: 'box',
        group: null,
        labels: {},
        state: 'ready',
        since: expect.stringMatching(/Z$/),
        error: null,
        next_try: null,
        tool_count: 8,
        in_flight: 0,
        queued: 0,
        longest_wait_ms: 0,
        restarts: 0,
        replicas: [expect.objectContaining({ replica: 1, state: 'ready' })],
      },
    ],
    [
      'tools',
      {
        name: 'box__echo',
        inputSchema: { type: 'object' },
        _meta: { 'dev.switchboard/server': 'box', 'dev.switchboard/name': 'echo' },
      },
    ],
    ['resources', { uriTemplate: expect.stringMatching(/^resource:\/\/everything\//) }],
    ['prompts', { name: 'simple-prompt' }],
  ])('prints %s as JSON', async (what, item) => {
    const { stdout } = await run('ls', what, '--json');
    expect(JSON.parse(stdout)).toEqual(expect.arrayContaining([expect.objectContaining(item)]));
  });

  it.each(['tools', 'resources', 'prompts'])('reports the servers whose %s it cannot show', async (what) => {
    const shown = await run('ls', what);
    expect(shown).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^note: dying is not included \(backing off\): .*API_TOKEN is not set/),
    });
    const { stdout, stderr } = await run('ls', what, '--json');
    expect(JSON.parse(stdout)).toBeInstanceOf(Array);
    expect(JSON.parse(stderr)).toEqual({
      unavailable: [
        {
          project: 'default',
          server: 'dying',
          state: 'backing_off',
          error: expect.stringContaining('API_TOKEN is not set'),
        },
      ],
    });
  });

  it('fails if it shows nothing because servers have failed', async () => {
    await using folder = await temporaryFolder();
    const config = join(folder.path, 'mcp.json');
    await writeFile(config, JSON.stringify({ mcpServers: { dying: fixtureServer('fails-to-start') } }));
    const failed = await runCli(['ls', 'tools', '--config', config]);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('API_TOKEN is not set') });
    await writeFile(config, JSON.stringify({ mcpServers: {} }));
    expect(await runCli(['ls', 'tools', '--config', config])).toEqual({
      code: 0,
      stdout: 'no tools\n',
      stderr: '',
    });
  });

  it('reports that a server is still starting', async () => {
    await using folder = await temporaryFolder();
    const config = join(folder.path, 'mcp.json');
    const mcpServers = { silent: fixtureServer('never-responds') };
    await writeFile(config, JSON.stringify({ mcpServers, switchboard: { discoveryWaitMs: 1 } }));
    expect(await runCli(['ls', 'tools', '--config', config])).toEqual({
      code: 0,
      stdout: 'no tools\n',
      stderr: 'note: silent is not included: it is still starting\n',
    });
  });

  it('runs a given configuration', async () => {
    const { code, stdout } = await runCli(['ls', 'tools', '--config', switchboard.configPath]);
    expect(code).toBe(0);
    expect(stdout).toContain('echo');
  });
});

describe('the address of the running Switchboard', () => {
  it.each(['/', '/mcp'])('may end in %s', async (path) => {
    const { code, stdout } = await runCli(['ls', '--url', switchboard.baseUrl + path]);
    expect(code).toBe(0);
    expect(stdout).toContain('box');
  });

  it('comes from SWITCHBOARD_URL unless another is given', async () => {
    const env = { SWITCHBOARD_URL: `${switchboard.baseUrl}/mcp` };
    expect((await runCli(['call', 'box__echo', 'text=hi'], { env })).stdout).toBe('hi\n');
    expect((await runCli(['ls', '--url', nobody], { env })).code).toBe(3);
  });

  it('is rejected if it is invalid', async () => {
    const { code, stderr } = await runCli(['ls', '--url', 'nowhere']);
    expect(code).toBe(2);
    expect(stderr).toContain('http://127.0.0.1:7400');
  });
});

describe('switchboard call', () => {
  it('accepts JSON', async () => {
    expect(await run('call', 'box__echo', '{"text": "Grüße"}')).toMatchObject({ code: 0, stdout: 'Grüße\n' });
  });

  it('accepts key=value, and converts values by the schema of the tool', async () => {
    const { stdout } = await run('call', 'get-sum', 'a=2', 'b=3');
    expect(stdout).toContain('5');
    expect((await run('call', 'box__echo', 'text=a=b')).stdout).toBe('a=b\n');
    // By its listed name, and by its qualified name, which is not listed.
    expect((await run('call', 'environment', 'name=007', '--json')).code).toBe(0);
    for (const text of ['007', '42', 'true', 'null', '{"a":1}']) {
      expect((await run('call', 'everything__echo', `message=${text}`)).stdout).toBe(`Echo: ${text}\n`);
    }
  });

  it('reports which value does not match the schema, and what would', async () => {
    expect(await run('call', 'everything__get-sum', 'a=two', 'b=3')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'error: "a" must be a number, and "two" is not.\n',
    });
  });

  it('prints the whole result as JSON', async () => {
    const { code, stdout } = await run('call', 'box__echo', 'text=hi', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ content: [{ type: 'text', text: 'hi' }] });
  });

  it('reports that a tool failed', async () => {
    const { code, stdout, stderr } = await run('call', 'get-sum', '{"a": "two"}');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).not.toBe('');
  });

  it('reports an unknown tool', async () => {
    expect(await run('call', 'juggle')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'error: Unknown tool: juggle (not known yet: what "dying" offers)\n',
    });
    const { stdout } = await run('call', 'juggle', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      error: {
        message: expect.stringContaining('Unknown tool: juggle'),
        rpc: { code: -32602, data: { code: 'unknown_tool' } },
      },
    });
  });

  it('rejects arguments that it cannot parse', async () => {
    expect(await run('call', 'echo', 'text')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('key=value'),
    });
    expect(await run('call', 'echo', '{"text":')).toMatchObject({ code: 2 });
  });
});

describe('switchboard logs', () => {
  it('shows the last lines of a server', async () => {
    await run('ls');
    expect((await run('logs', 'dying')).stdout).toContain('FATAL: the variable API_TOKEN is not set\n');
    const { stdout } = await run('logs', 'dying', '--json');
    expect(JSON.parse(stdout)).toContain('loading …');
  });

  it('reports an unknown server', async () => {
    expect(await run('logs', 'nobody')).toMatchObject({
      code: 1,
      stderr: 'error: There is no server "nobody" in project "default".\n',
    });
  });
});

describe('without a running Switchboard', () => {
  it.each([[['ls']], [['call', 'echo']], [['logs', 'box']]])(
    '%j explains how to start one',
    async (words) => {
      const { code, stderr } = await runCli([...words, '--url', nobody]);
      expect(code).toBe(3);
      expect(stderr).toBe(`error: There is no Switchboard at ${nobody}. Start one with: switchboard up\n`);
    },
  );

  it('the error names the source of the address', async () => {
    const { code, stderr } = await runCli(['ls'], { env: { SWITCHBOARD_URL: nobody } });
    expect(code).toBe(3);
    expect(stderr).toBe(
      `error: There is no Switchboard at ${nobody}, the address in SWITCHBOARD_URL. Start one with: switchboard up\n`,
    );
  });

  it('the error is printed as JSON too', async () => {
    const { code, stdout } = await runCli(['ls', '--json', '--url', nobody]);
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'unreachable' } });
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Finished, runCli, startCli, temporaryFolder } from '../helpers/cli.ts';
import { mainProgram } from '../helpers/programs.ts';
import { fixtureServer } from '../helpers/servers.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const box = fixtureServer('toolbox');

/** Switchboard with one server in its configuration file, and its command line. */
async function start(mcpServers: object = { box }) {
  const switchboard = await startSwitchboard({ mcpServers }, { database: 'shared' });
  onTestFinished(() => switchboard.stop());
  /** Options stand in front of the words behind --. */
  const cli = (...words: string[]): Promise<Finished> => runCli(addressed(switchboard, words));
  /** Runs a command that has to succeed, and gives what it prints. */
  const done = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await cli(...words);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  };
  return {
    switchboard,
    cli,
    done,
    json: async (...words: string[]): Promise<unknown> => JSON.parse(await done(...words, '--json')),
    /** The names in a list. */
    names: async (...words: string[]): Promise<string[]> => {
      const list = JSON.parse(await done(...words, '--json')) as { name: string }[];
      return list.map(({ name }) => name);
    },
    /** Adds a server of test/fixtures, whose command stands behind --. */
    addBox: (name: string, ...options: string[]) =>
      cli('server', 'add', name, ...options, '--', box.command, ...box.args),
    pipe: (input: string, ...words: string[]) => pipeInto(addressed(switchboard, words), input),
  };
}

function addressed({ baseUrl }: RunningSwitchboard, words: string[]): string[] {
  const behind = words.indexOf('--');
  return words.toSpliced(behind === -1 ? words.length : behind, 0, '--url', baseUrl);
}

async function pipeInto(words: string[], input: string): Promise<Finished> {
  const child = spawn(process.execPath, [mainProgram, ...words], { stdio: 'pipe' });
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

async function fileWith(contents: unknown): Promise<string> {
  const folder = await temporaryFolder();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const path = join(folder.path, 'file.json');
  await writeFile(path, typeof contents === 'string' ? contents : JSON.stringify(contents));
  return path;
}

describe('the command line on projects', () => {
  it('adds, lists, shows, changes and removes a project', async () => {
    const { cli, done, json, names, switchboard } = await start();
    expect(await done('project', 'ls')).toMatch(/^default +1 server/);
    expect(await done('project', 'add', 'research', '--description', 'Ours')).toBe(
      `added project research, which clients reach at ${switchboard.baseUrl}/mcp/research\n${switchboard.baseUrl}/mcp has the servers of all projects\n`,
    );
    expect(await json('project', 'show', 'research')).toMatchObject({
      name: 'research',
      description: 'Ours',
      record_payloads: false,
      retention_days: 30,
    });
    const words = [
      '--name',
      'lab',
      '--description',
      '',
      '--record-payloads',
      'on',
      '--retention-days',
      'never',
    ];
    expect(await done('project', 'set', 'research', ...words)).toMatch(/kept for +ever/);
    expect(await done('project', 'set', 'lab', '--names', 'as-is')).toMatch(/tool names +as-is/);
    expect(await json('project', 'show', 'lab')).toMatchObject({
      description: null,
      record_payloads: true,
      retention_days: null,
      names: 'as-is',
    });
    expect((await names('project', 'ls')).sort()).toEqual(['default', 'lab']);

    expect(await cli('project', 'add', 'lab')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('lab'),
    });
    expect(await cli('project', 'show', 'nobody')).toMatchObject({ code: 1 });
    expect(await cli('project', 'add', 'a b')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^error: name: /),
    });
    expect(await cli('project', 'rm', 'lab')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--yes'),
    });
    expect(await done('project', 'rm', 'lab', '--yes')).toBe('removed project lab\n');
    expect((await cli('project', 'rm', 'default', '--yes')).code).toBe(1);
  });

  it('adds, changes, switches, tests and removes a server, while clients use it', async () => {
    const { cli, done, json, addBox } = await start({});
    expect(
      await addBox('files', '-e', 'LEVEL=info', '--label', 'region=eu', '--description', 'Reads'),
    ).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^added server files to project default\nfiles answers: 8 tools, 0 resources, 0 prompts \(/,
      ),
    });
    expect(await done('call', 'environment', 'name=LEVEL')).toBe('info\n');
    expect(await json('server', 'ls')).toMatchObject([
      { name: 'files', source: 'api', state: 'ready', description: 'Reads', labels: { region: 'eu' } },
    ]);
    expect(await done('server', 'test', 'files')).toMatch(
      /^files answers: 8 tools, 0 resources, 0 prompts \(/,
    );

    await done('server', 'set', 'files', '--env', 'LEVEL=debug', '--prefix', 'f', '--unset', 'label.region');
    expect(await done('call', 'environment', 'name=LEVEL')).toBe('debug\n');
    expect(await json('server', 'show', 'files')).toMatchObject({ prefix: 'f', labels: {} });
    await done('server', 'set', 'files', '--unset', 'prefix', '--name', 'papers');
    expect(await done('server', 'show', 'papers')).toMatch(/^env +LEVEL=debug$/m);

    await done('server', 'disable', 'papers');
    expect(await done('server', 'ls')).toMatch(/^papers +disabled /);
    expect((await cli('call', 'environment', 'name=LEVEL')).code).toBe(1);
    await done('server', 'enable', 'papers');
    expect(await done('call', 'environment', 'name=LEVEL')).toBe('debug\n');

    expect((await addBox('papers')).code).toBe(1);
    expect(await done('server', 'rm', 'papers')).toBe('removed server papers\n');
    expect(await done('server', 'ls')).toBe('no servers\n');
    expect((await cli('server', 'rm', 'papers')).code).toBe(1);
  });

  it('says why a server cannot be used, and what of it is wrong', async () => {
    const { cli } = await start({});
    expect(await cli('server', 'add', 'gone', '--', '/no/such/program')).toMatchObject({
      code: 1,
      stdout: 'added server gone to project default\n',
      stderr: expect.stringMatching(/^gone cannot be used: .*\/no\/such\/program/),
    });
    const { code, stdout } = await cli('server', 'add', 'lost', '--json', '--', '/no/such/program');
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({
      code: 1,
      name: 'lost',
      test: { ok: false, error: expect.stringContaining('/no/such/program') },
    });
    for (const option of ['--no-test', '--disabled']) {
      expect(await cli('server', 'add', `left${option}`, option, '--', '/no/such/program')).toMatchObject({
        code: 0,
        stderr: '',
      });
    }
    expect(await cli('server', 'test', 'gone')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('gone cannot be used'),
    });
    expect(await cli('server', 'add', 'far', '--endpoint', 'ftp://example.org')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^error: config\.url: /),
    });
    expect(await cli('server', 'add', 'near', '--replicas', '0', '--', 'x')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^error: replicas: /),
    });
  });

  it('switches a server of the configuration file, and changes nothing else of it', async () => {
    const { cli, done, json, switchboard } = await start();
    const before = await readFile(switchboard.configPath, 'utf8');
    expect(await json('server', 'show', 'box')).toMatchObject({ source: 'file', version: null });
    await done('server', 'disable', 'box');
    expect(await json('server', 'show', 'box')).toMatchObject({ enabled: false, state: 'disabled' });
    await done('server', 'enable', 'box');
    expect(await done('call', 'echo', 'text=hello')).toBe('hello\n');
    expect((await cli('server', 'set', 'box', '--prefix', 'b')).code).toBe(1);
    expect((await cli('server', 'rm', 'box')).code).toBe(1);
    expect(JSON.parse(await readFile(switchboard.configPath, 'utf8'))).toEqual(JSON.parse(before));
  });

  it('keeps secrets, which reach the server and nobody else', async () => {
    const { cli, done, json, addBox, pipe } = await start({});
    await addBox('box', '-e', `TOKEN=\${TOKEN}`);
    expect((await cli('call', 'environment', 'name=TOKEN')).code).toBe(1);
    expect(await pipe('hunter2\n', 'secret', 'set', 'TOKEN')).toMatchObject({
      code: 0,
      stdout: 'secret TOKEN is set, used by box\n',
    });
    expect(await done('call', 'environment', 'name=TOKEN')).toBe('hunter2\n');
    const shown = await done('secrets', 'ls');
    expect(shown).toMatch(/^TOKEN .* used by box\n$/);
    expect(await json('secret', 'ls')).toMatchObject([{ name: 'TOKEN', used_by: ['box'] }]);
    expect(await done('server', 'show', 'box')).toContain(`TOKEN=\${TOKEN}`);
    expect(await json('secret', 'rotate')).toMatchObject({ rotated: 1, key_id: expect.any(String) });
    expect((await cli('secret', 'set', 'A', 'hunter2')).code).toBe(2);
    expect((await pipe('x', 'secret', 'set', 'a-b')).code).toBe(2);
    expect((await cli('secret', 'rm', 'TOKEN')).stderr).toContain(
      'is used by box, which cannot run without it',
    );
    expect(await done('secret', 'rm', 'TOKEN', '--yes')).toBe('removed secret TOKEN\n');
    expect((await cli('secret', 'rm', 'TOKEN')).code).toBe(1);
  });

  it('installs, upgrades and removes a product', async () => {
    const { cli, done, json, names } = await start();
    const manifest = (version: string, ...servers: object[]) =>
      fileWith({ name: 'acme', version, mcp: { servers } });
    const server = (name: string, more: object = {}) => ({ name, transport: 'stdio', ...box, ...more });
    expect(await done('product', 'install', await manifest('1', server('a'), server('b'), server('c')))).toBe(
      'product acme 1\n  + a\n  + b\n  + c\n',
    );
    const second = await manifest('2', server('a'), server('b', { env: { X: 'y' } }), server('d'));
    expect(await done('product', 'install', second)).toBe(
      'product acme 2: 1 server as before\n  + d\n  ~ b\n  - c\n',
    );
    expect(await json('product', 'ls')).toMatchObject([{ name: 'acme', version: '2' }]);
    expect(await done('server', 'ls')).toMatch(/^a +idle +stdio +product acme/m);
    expect(await cli('product', 'install', await manifest('3', server('box')))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('box'),
    });
    expect(await done('product', 'rm', 'acme')).toBe('removed product acme\n');
    expect(await names('server', 'ls')).toEqual(['box']);
  });

  it('switches tools', async () => {
    const { cli, done, names } = await start();
    await done('ls', 'tools');
    expect(await done('tool', 'ls')).toMatch(/^echo +box/m);
    expect(await done('tool', 'disable', 'echo')).toBe('echo of box is off\n');
    expect(await done('tool', 'ls')).not.toMatch(/^echo /m);
    expect(await done('tool', 'ls', '--all')).toMatch(/echo +box +off/);
    expect(await names('ls', 'tools')).not.toContain('echo');
    expect((await cli('call', 'echo', 'text=hello')).code).toBe(1);
    await done('tool', 'enable', 'box__echo');
    expect(await done('call', 'echo', 'text=hello')).toBe('hello\n');
    expect((await cli('tool', 'enable', 'nothing')).code).toBe(1);
  });

  it('shows calls, and follows them', async () => {
    const { done, json, cli, switchboard } = await start();
    await done('call', 'echo', 'text=hello');
    await using following = startCli(addressed(switchboard, ['calls', '--follow', '--tool', 'echo']));
    await following.lines.first((line) => / ok +box\S* +echo +\d+ ms /.test(line));
    await done('call', 'echo', 'text=again');
    await following.lines.several(2, (line) => line.includes('echo'));
    following.process.kill('SIGINT');
    expect(await following.finished).toEqual({ code: 0, stderr: '' });

    expect(await json('calls', '--since', '1h', '--limit', '1')).toMatchObject([
      { server: 'box', tool: 'echo', status: 'ok', error: null },
    ]);
    expect(await done('calls', '--status', 'timeout')).toBe('no calls\n');
    expect(await done('calls', '--until', '2020-01-01T00:00:00Z')).toBe('no calls\n');
    expect((await cli('calls', '-P', 'nobody')).code).toBe(1);
  });

  it('imports into a project', async () => {
    const { cli, done, json, pipe } = await start();
    await done('project', 'add', 'lab');
    const file = await fileWith({ mcpServers: { box: { ...box, description: 'Has tools' } } });
    expect(await done('import', file, '--project', 'lab')).toBe('1 server added to project lab: box\n');
    expect(await json('server', 'show', 'box', '-P', 'lab')).toMatchObject({
      project: 'lab',
      source: 'api',
      description: 'Has tools',
    });
    expect(await cli('import', file, '-P', 'lab')).toEqual({
      ...{ code: 0, stdout: 'no servers added to project lab\n' },
      stderr: 'note: box: it is in the project already\n',
    });
    const keyed = (key: string) => fileWith({ mcpServers: { box: { ...box, env: { API_KEY: key } } } });
    expect(await cli('import', await keyed('one-secret'), '-P', 'lab')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--force replaces them'),
    });
    expect((await cli('import', await keyed('one-secret'), '-P', 'lab', '--force')).stdout).toBe(
      '1 server added to or replaced in project lab: box\n',
    );
    expect((await cli('import', await keyed('one-secret'), '-P', 'lab')).code).toBe(0);
    expect((await cli('import', await keyed('other-secret'), '-P', 'lab')).code).toBe(1);
    const weather = {
      name: 'io.github.ada/weather',
      description: 'Tells the weather',
      version: '1.0.0',
      packages: [
        {
          registryType: 'npm',
          identifier: '@ada/weather',
          version: '1.0.0',
          transport: { type: 'stdio' },
          environmentVariables: [{ name: 'KEY', isRequired: true, isSecret: true, description: 'Your key' }],
        },
      ],
    };
    expect(await pipe(JSON.stringify({ server: weather }), 'import', '-', '-P', 'lab')).toMatchObject({
      code: 0,
      stdout: '1 server added to project lab: weather\n',
      stderr: 'note: weather: set the secret KEY (Your key)\n',
    });
    expect(await json('server', 'show', 'weather', '-P', 'lab')).toMatchObject({
      description: 'Tells the weather',
      config: { command: 'npx', args: ['-y', '@ada/weather@1.0.0'], env: { KEY: `\${KEY}` } },
    });
  });

  it('imports into the Switchboard that is named by its address', async () => {
    const { cli, done, json } = await start({});
    const file = await fileWith({ mcpServers: { box } });
    expect(await done('import', file)).toBe('1 server added to project default: box\n');
    expect(await json('server', 'show', 'box')).toMatchObject({ source: 'api' });
    expect(await cli('import', file, '--config', `${file}.new`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--url'),
    });
  });

  it('looks at one project or at all of them', async () => {
    const { cli, done, names, addBox, switchboard } = await start();
    expect(await done('ls')).toMatch(/^box +ready /);
    await done('project', 'add', 'lab');
    await addBox('tools', '-P', 'lab');
    const all = await done('ls');
    expect(all).toMatch(/^default +box +ready /m);
    expect(all).toMatch(/^lab +tools +ready /m);
    expect(await done('ls', 'servers', '-P', 'lab')).toMatch(/^tools +ready /);
    expect(await names('ls', 'tools', '-P', 'lab')).toContain('echo');
    expect(await done('call', 'echo', 'text=hello', '-P', 'lab')).toBe('hello\n');
    expect((await cli('call', 'tools__echo', 'text=hello', '-P', 'default')).code).toBe(1);
    expect(await done('logs', 'tools', '-P', 'lab')).toBe('');
    for (const words of [['ls'], ['ls', 'tools'], ['call', 'echo'], ['logs', 'tools'], ['watch']]) {
      expect(await cli(...words, '-P', 'nobody')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('nobody'),
      });
    }
    await using watching = startCli(addressed(switchboard, ['watch', '-P', 'lab']));
    await watching.lines.first((line) => / tools +ready /.test(line));
    await done('server', 'disable', 'tools', '-P', 'lab');
    await watching.lines.first((line) => / tools +(stopped|disabled)/.test(line));
  });
});

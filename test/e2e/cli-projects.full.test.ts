import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { startCli } from '../helpers/cli.ts';
import { addressed, box, fileWith, start } from './project-commands.ts';

describe('the command line for the contents of projects', () => {
  it('adds, changes, disables, tests and removes a server while clients use it', async () => {
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

  it('enables and disables a server of the configuration file, and changes nothing else', async () => {
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
      'product acme 2: 1 server unchanged\n  + d\n  ~ b\n  - c\n',
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

  it('enables and disables tools', async () => {
    const { cli, done, names } = await start();
    await done('ls', 'tools');
    expect(await done('tool', 'ls')).toMatch(/^echo +box/m);
    expect(await done('tool', 'disable', 'echo')).toBe('echo of box is disabled\n');
    expect(await done('tool', 'ls')).not.toMatch(/^echo /m);
    expect(await done('tool', 'ls', '--all')).toMatch(/echo +box +off/);
    expect(await names('ls', 'tools')).not.toContain('echo');
    expect((await cli('call', 'echo', 'text=hello')).code).toBe(1);
    await done('tool', 'enable', 'box__echo');
    expect(await done('call', 'echo', 'text=hello')).toBe('hello\n');
    expect((await cli('tool', 'enable', 'nothing')).code).toBe(1);
  });

  it('shows calls, and follows new ones', async () => {
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

  it('imports into the Switchboard at a given address', async () => {
    const { cli, done, json } = await start({});
    const file = await fileWith({ mcpServers: { box } });
    expect(await done('import', file)).toBe('1 server added to project default: box\n');
    expect(await json('server', 'show', 'box')).toMatchObject({ source: 'api' });
    expect(await cli('import', file, '--config', `${file}.new`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--url'),
    });
  });

  it('shows one project or all of them', async () => {
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

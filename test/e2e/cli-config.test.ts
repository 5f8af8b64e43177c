import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { runCli, startCli, temporaryFolder } from '../helpers/cli.ts';
import { Inbox } from '../helpers/inbox.ts';
import { mainProgram } from '../helpers/programs.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';

describe('switchboard up', () => {
  it('says how to add a server if there is none', async () => {
    await using folder = await temporaryFolder();
    const config = join(folder.path, 'mcp.json');
    await writeFile(config, '{"mcpServers": {}}');
    const words = ['up', '--config', config, '--port', '0', '--no-database'];
    await using running = startCli(words, { SWITCHBOARD_HOME: folder.path });
    await running.lines.first((line) => line === '  Servers:');
    expect(await running.lines.first((line) => line.includes('none'))).toBe(
      '    none yet: switchboard server add',
    );
  });

  it('prints the endpoint, the client configuration, and each server when it is ready', async () => {
    await using folder = await temporaryFolder();
    const config = join(folder.path, 'mcp.json');
    const mcpServers = {
      box: fixtureServer('toolbox'),
      later: { ...fixtureServer('toolbox'), startup: 'lazy' },
    };
    await writeFile(config, JSON.stringify({ mcpServers, switchboard: { startup: 'parallel' } }));
    const child = spawn(process.execPath, [mainProgram, 'up', '--port', '0'], {
      cwd: folder.path,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const lines = new Inbox<string>();
    createInterface({ input: child.stdout }).on('line', (line) => lines.add(line));
    const [, endpoint] = /endpoint +(\S+)/.exec(await lines.first((line) => line.includes('endpoint')))!;
    expect(endpoint).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    await lines.first((line) => line.includes(config));
    await lines.first((line) =>
      line.includes(`{"mcpServers":{"switchboard":{"type":"http","url":"${endpoint}"}}}`),
    );
    await lines.first((line) => /○ later +idle +starts on first use/.test(line));
    await lines.first((line) => /● box +ready +8 tools, 0 resources, 0 prompts/.test(line));

    await writeFile(
      config,
      JSON.stringify({
        mcpServers: { box: fixtureServer('fails-to-start') },
        switchboard: { startup: 'parallel' },
      }),
    );
    await lines.first((line) => /configuration changed: \+ box {2}- box {2}- later/.test(line));
    await lines.first((line) => /◐ box +backing off +Server "box" .*API_TOKEN/.test(line));

    const exit = once(child, 'exit');
    child.kill('SIGINT');
    expect(await exit).toEqual([0, null]);
    expect(lines.items.at(-1)).toBe('stopping …');
  });

  it('reports that the port is in use', async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'mcp.json'), '{"mcpServers": {}}');
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const home = join(folder.path, 'home');
    const { code, stdout, stderr } = await runCli(['up', '--port', String(port)], {
      cwd: folder.path,
      env: { DATABASE_URL: '', SWITCHBOARD_HOME: home },
    });
    taken.close();
    expect(code).toBe(2);
    expect(stderr).toContain(`port ${port} on 127.0.0.1 is in use`);
    // No database is created if Switchboard cannot start.
    expect({ stdout, isThere: existsSync(home) }).toEqual({ stdout: '', isThere: false });
  });

  it.each(['0.0.0.0', '::', '192.168.1.5'])(
    'does not expose the servers to the network (%s)',
    async (host) => {
      await using folder = await temporaryFolder();
      await writeFile(join(folder.path, 'mcp.json'), '{"mcpServers": {}}');
      const { code, stdout } = await runCli(['up', '--host', host, '--port', '0', '--json'], {
        cwd: folder.path,
      });
      expect(code).toBe(2);
      expect(JSON.parse(stdout)).toMatchObject({
        error: {
          code: 'invalid_config',
          message: expect.stringContaining(`does not listen on ${host} without authentication`),
        },
      });
    },
  );

  it.each([
    [['--tls-cert', 'cert.pem'], '--tls-cert and --tls-key belong together'],
    [['--tls-key', 'key.pem'], '--tls-cert and --tls-key belong together'],
    [['--public-url', 'https://sb.example/mcp'], 'an address without a path'],
    [['--trusted-proxy', 'proxy'], 'an address or a range'],
    [['--auth', '--no-database'], 'Authentication needs a database'],
  ])('rejects %s', async (words, reason) => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'mcp.json'), '{"mcpServers": {}}');
    const { code, stderr } = await runCli(['up', '--port', '0', ...words], { cwd: folder.path });
    expect([code, stderr]).toEqual([2, expect.stringContaining(reason)]);
  });

  it('lists where it looked for a configuration', async () => {
    await using folder = await temporaryFolder();
    const { code, stderr } = await runCli(['up'], {
      cwd: folder.path,
      env: { SWITCHBOARD_HOME: folder.path },
    });
    expect(code).toBe(2);
    expect(stderr).toContain(`none of mcp.json, .mcp.json, ${folder.path}/mcp.json exists`);
  });
});

describe('switchboard check', () => {
  it('reports that a file is valid', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'right.json');
    const mcpServers = {
      a: { command: 'node', commnad: 'b', replicas: 3 },
      b: { url: 'http://localhost/', disabled: true, group: 'g' },
    };
    await writeFile(file, JSON.stringify({ mcpServers }));
    const { code, stdout, stderr } = await runCli(['check', file]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `${file} is valid: 2 servers, 1 of them disabled\n`,
    });
    expect(stderr).toContain('did you mean "command"?');
    const json = JSON.parse((await runCli(['check', file, '--json'])).stdout);
    expect(json).toMatchObject({
      ok: true,
      servers: [
        { name: 'a', enabled: true, transport: 'stdio', replicas: 3 },
        { name: 'b', enabled: false, transport: 'http', group: 'g', replicas: 1 },
      ],
      settings: { naming: 'on-conflict' },
    });
  });

  it('finds missing commands, missing folders and unset variables', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'mcp.json');
    await writeFile(join(folder.path, 'here.sh'), '#!/bin/sh\n', { mode: 0o755 });
    await writeFile(join(folder.path, 'plain.txt'), '');
    const mcpServers = {
      there: { command: 'node', env: { HOME: `\${HOME}`, LEVEL: `\${NO_SUCH_LEVEL:-info}` } },
      beside: { command: './here.sh' },
      gone: { command: 'no-such-program' },
      moved: { command: './gone.sh' },
      plain: { command: './plain.txt' },
      pathless: { command: 'node', env: { PATH: '/nowhere' } },
      homeless: { command: 'node', cwd: 'no/such/folder' },
      unset: { command: 'no-such-tool', cwd: 'gone', args: [`\${NO_SUCH_LEVEL}`] },
      unknown: { command: `\${NO_SUCH_LEVEL}`, cwd: `\${NO_SUCH_LEVEL}` },
      off: { command: 'no-such-program', enabled: false },
      remote: { url: 'https://example.com/mcp', headers: { Authorization: `Bearer \${NO_SUCH_TOKEN}` } },
    };
    await writeFile(file, JSON.stringify({ mcpServers }));
    const { code, stdout, stderr } = await runCli(['check', file]);
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr.split('\n')).toEqual([
      'error: gone: the command "no-such-program" is not in the PATH',
      `error: moved: the command "${folder.path}/gone.sh" does not exist`,
      `error: plain: the command "${folder.path}/plain.txt" cannot be executed`,
      'error: pathless: the command "node" is not in the PATH',
      `error: homeless: the folder "${folder.path}/no/such/folder" does not exist`,
      `error: unset: the folder "${folder.path}/gone" does not exist`,
      'error: unset: the command "no-such-tool" is not in the PATH',
      expect.stringMatching(/^warning: unset: the variable NO_SUCH_LEVEL \(in args\[0\]\) is not set/),
      expect.stringMatching(/^warning: unknown: the variable NO_SUCH_LEVEL \(in command\) is not set/),
      expect.stringMatching(/^warning: unknown: the variable NO_SUCH_LEVEL \(in cwd\) is not set/),
      expect.stringMatching(
        /^warning: remote: the variable NO_SUCH_TOKEN \(in headers.Authorization\) is not set/,
      ),
      `${file} is well-formed, but 6 of its 11 servers cannot start here`,
      '',
    ]);
    const json = JSON.parse((await runCli(['check', file, '--json'])).stdout);
    expect(json).toMatchObject({ ok: false });
    expect(json.warnings).toContainEqual(expect.stringContaining('NO_SUCH_TOKEN'));
    expect(json.problems).toHaveLength(7);

    await writeFile(file, JSON.stringify({ mcpServers: { remote: mcpServers.remote } }));
    expect(await runCli(['check', file])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('NO_SUCH_TOKEN'),
    });
    const env = { NO_SUCH_TOKEN: 'x' };
    expect(await runCli(['check', file], { env })).toMatchObject({ code: 0, stderr: '' });
  });

  it('warns about a server that is Switchboard itself, and about one that could change the file', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'mcp.json');
    const mcpServers = {
      self: { url: 'http://localhost:7400/mcp' },
      files: { command: 'node', args: ['server.js', '.'] },
    };
    await writeFile(file, JSON.stringify({ mcpServers }));
    const { code, stderr } = await runCli(['check', file]);
    expect(code).toBe(0);
    expect(stderr.split('\n')).toEqual([
      expect.stringMatching(/^warning: .*: files: .* can read and change this configuration/),
      expect.stringMatching(/^warning: self: this is Switchboard itself/),
      '',
    ]);
    expect((await runCli(['check', 'mcp.json'], { cwd: join(import.meta.dirname, '../..') })).stderr).toBe(
      '',
    );
  });

  it('reports every error and its position', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'wrong.json');
    await writeFile(file, '{"mcpServers": {"a": {"command": 7}, "b": {}}, "switchboard": {"pageSize": -1}}');
    const { code, stderr } = await runCli(['check', file]);
    expect(code).toBe(2);
    for (const place of [file, 'mcpServers.a.command: ', 'mcpServers.b: ', 'switchboard.pageSize: ']) {
      expect(stderr).toContain(place);
    }
    const { error } = JSON.parse((await runCli(['check', file, '--json'])).stdout);
    expect(error).toMatchObject({ code: 'invalid_config', message: expect.stringContaining('mcpServers.b') });
  });

  it('reports a missing file', async () => {
    expect(await runCli(['check', '/no/such/file.json'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('/no/such/file.json'),
    });
  });
});

describe('switchboard import', () => {
  const files = {
    'claude_desktop_config.json': {
      mcpServers: { desktop: { command: 'npx', args: ['-y', 'server'], env: { A: 'b' } } },
    },
    'cursor.json': {
      mcpServers: { cursor: { url: 'https://example.com/mcp', headers: { Authorization: 'x' } } },
    },
    'vscode.json': {
      inputs: [{ id: 'key', type: 'promptString', description: 'The key' }],
      servers: { code: { type: 'stdio', command: 'node', args: ['server'], env: { KEY: `\${input:key}` } } },
    },
  };

  it('adds the servers of Claude Desktop, Cursor and VS Code to a Switchboard file', async () => {
    await using folder = await temporaryFolder();
    const target = join(folder.path, 'sub', 'mcp.json');
    for (const [name, content] of Object.entries(files)) {
      await writeFile(join(folder.path, name), JSON.stringify(content));
      const { code, stdout, stderr } = await runCli(['import', name, '--config', target], {
        cwd: folder.path,
      });
      expect(code).toBe(0);
      expect(stdout).toContain(`1 server written to ${target}`);
      if (name === 'vscode.json') expect(stderr).toContain('set the variable key (The key)');
    }
    expect(JSON.parse(await readFile(target, 'utf8'))).toEqual({
      mcpServers: {
        ...files['claude_desktop_config.json'].mcpServers,
        ...files['cursor.json'].mcpServers,
        ...files['vscode.json'].servers,
      },
    });
    expect((await runCli(['check', target])).stderr).not.toContain('error: ');

    const again = ['import', join(folder.path, 'cursor.json'), '--config', target];
    expect(await runCli(again)).toEqual({
      code: 0,
      stdout: `1 server already in ${target}: cursor\n`,
      stderr: '',
    });
    const changed = { mcpServers: { cursor: { url: 'https://example.com/other' } } };
    await writeFile(join(folder.path, 'cursor.json'), JSON.stringify(changed));
    const refused = await runCli([...again, '--json']);
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      error: { code: 'conflict', message: expect.stringContaining('--force') },
    });
    const forced = await runCli([...again, '--json', '--force']);
    expect(JSON.parse(forced.stdout)).toEqual({
      ...{ config: target, imported: ['cursor'], replaced: ['cursor'], unchanged: [], notes: [] },
    });
    await writeFile(join(folder.path, 'cursor.json'), JSON.stringify(files['cursor.json']));
    expect((await runCli([...again, '--force'])).stdout).toBe(`1 server replaced in ${target}: cursor\n`);
  });

  it('reports credentials in plain text, and variables that must be set', async () => {
    await using folder = await temporaryFolder();
    const mcpServers = {
      plain: { command: 'node', env: { LEVEL: 'info', SET: `\${HOME}` }, args: [`\${workspaceFolder}`] },
      open: { command: 'node', env: { API_TOKEN: 'a1b2c3d4e5f6' } },
      referring: { url: 'https://example.com/mcp', headers: { Authorization: `Bearer \${NO_SUCH_TOKEN}` } },
      itself: { url: 'http://127.0.0.1:1/mcp' },
    };
    await writeFile(join(folder.path, 'theirs.json'), JSON.stringify({ mcpServers }));
    const env = { SWITCHBOARD_URL: 'http://127.0.0.1:1' };
    const { stdout, stderr } = await runCli(['import', 'theirs.json'], { cwd: folder.path, env });
    const target = join(folder.path, 'mcp.json');
    expect(stdout).toBe(`3 servers written to ${target}: plain, open, referring\n`);
    expect(stderr.split('\n')).toEqual([
      `note: plain: replace \${workspaceFolder} with a path: only an editor can resolve it`,
      'note: left out: itself: it is Switchboard itself',
      'note: referring: set the variable NO_SUCH_TOKEN where Switchboard runs, or the secret: switchboard secret set NO_SUCH_TOKEN',
      `note: credentials of open are in ${target} in plain text; import -P default encrypts them`,
      '',
    ]);
  });

  it('reports that the running Switchboard reads another file', async () => {
    await using folder = await temporaryFolder();
    await using switchboard = await startSwitchboard({});
    await writeFile(join(folder.path, 'theirs.json'), '{"mcpServers": {"box": {"command": "node"}}}');
    const env = { SWITCHBOARD_URL: switchboard.baseUrl, SWITCHBOARD_HOME: switchboard.home };
    const run = (...words: string[]) =>
      runCli(['import', join(folder.path, 'theirs.json'), ...words], { cwd: folder.path, env });
    expect((await run()).stderr).toBe(
      `note: the Switchboard at ${switchboard.baseUrl} reads ${switchboard.configPath}, and not this file: import with -c ${switchboard.configPath}, or with -P default\n`,
    );
    expect((await run('-c', switchboard.configPath)).stderr).toBe('');
  });

  it('imports the servers of Codex, and those of Claude Code by folder', async () => {
    await using folder = await temporaryFolder();
    const codex = '[mcp_servers.codex]\ncommand = "npx"\ntool_timeout_sec = 90\n';
    await writeFile(join(folder.path, 'config.toml'), codex);
    const claude = {
      mcpServers: { everywhere: { command: 'a' } },
      projects: {
        [folder.path]: { mcpServers: { here: { command: 'b' } } },
        '/elsewhere': { mcpServers: { there: { command: 'c' } } },
      },
    };
    await writeFile(join(folder.path, '.claude.json'), JSON.stringify(claude));
    const run = async (...words: string[]) => (await runCli(['import', ...words], { cwd: folder.path })).code;
    expect(await run('config.toml')).toBe(0);
    expect(await run('.claude.json')).toBe(0);
    // The servers for all projects were imported above.
    expect(await run('.claude.json', '--folder', '/elsewhere', '--config', 'mcp.json')).toBe(0);
    expect(JSON.parse(await readFile(join(folder.path, 'mcp.json'), 'utf8')).mcpServers).toEqual({
      codex: { command: 'npx', timeoutMs: 90_000 },
      everywhere: { command: 'a' },
      here: { command: 'b' },
      there: { command: 'c' },
    });
    expect(await run('.claude.json', '--folder', '/elsewhere', '--config', 'other.json')).toBe(0);
    const other = JSON.parse(await readFile(join(folder.path, 'other.json'), 'utf8'));
    expect(Object.keys(other.mcpServers)).toEqual(['everywhere', 'there']);
  });

  it('follows a symbolic link to the file', async () => {
    await using folder = await temporaryFolder();
    const [source, real, target] = ['source.json', 'real.json', 'mcp.json'].map((name) =>
      join(folder.path, name),
    );
    await writeFile(source!, JSON.stringify({ mcpServers: { box: { command: 'node' } } }));
    await writeFile(real!, '{"mcpServers": {}}');
    await symlink(real!, target!);
    expect((await runCli(['import', source!, '--config', target!])).code).toBe(0);
    expect(await readlink(target!)).toBe(real);
    expect(await readFile(real!, 'utf8')).toContain('box');
  });

  it('adds to a file that uses the format of VS Code', async () => {
    await using folder = await temporaryFolder();
    const target = join(folder.path, 'ours.json');
    const source = join(folder.path, 'theirs.json');
    await writeFile(target, JSON.stringify({ servers: { present: { command: 'here' } } }));
    await writeFile(source, JSON.stringify({ mcpServers: { added: { command: 'there' } } }));
    expect((await runCli(['import', source, '--config', target])).code).toBe(0);
    expect(Object.keys(JSON.parse(await readFile(target, 'utf8')))).toEqual(['servers']);
  });

  it('does not rewrite a file whose comments would be lost', async () => {
    await using folder = await temporaryFolder();
    const target = join(folder.path, 'ours.json');
    const source = join(folder.path, 'theirs.json');
    const commented = '{"mcpServers": {} /* nothing yet */}';
    await writeFile(target, commented);
    await writeFile(source, JSON.stringify({ mcpServers: { added: { command: 'there' } } }));
    const { code, stderr } = await runCli(['import', source, '--config', target]);
    expect({ code, contents: await readFile(target, 'utf8') }).toEqual({ code: 2, contents: commented });
    expect(stderr).toContain('comments');
  });

  it('does not rewrite an invalid file', async () => {
    await using folder = await temporaryFolder();
    const target = join(folder.path, 'mcp.json');
    const source = join(folder.path, 'cursor.json');
    await writeFile(target, '{"mcpServers": ');
    await writeFile(source, JSON.stringify(files['cursor.json']));
    expect((await runCli(['import', source, '--config', target])).code).toBe(2);
    expect(await readFile(target, 'utf8')).toBe('{"mcpServers": ');
  });
});

describe('the command line', () => {
  it('prints its help', async () => {
    const { code, stdout } = await runCli(['--help']);
    expect(code).toBe(0);
    for (const command of ['up', 'stdio', 'ls', 'watch', 'call', 'logs', 'host', 'import', 'check']) {
      expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'));
    }
    expect(stdout).toContain('Exit codes: 0 success; 1 the operation failed');
    for (const command of ['up', 'watch', 'call', 'host', 'hosted']) {
      const help = await runCli([command, '--help']);
      expect(help).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(`Usage: switchboard ${command} `),
      });
      expect(help.stdout).toContain('Exit codes:');
    }
  });

  it.each([
    [['juggle'], 'unknown command'],
    [['ls', 'people'], "'people' is invalid"],
    [['call'], 'missing required argument'],
    [['up', '--port', 'seven'], 'Use a number from 0 to 65535'],
    [['up', '--startup', 'eager'], 'Allowed choices are lazy, sequential, parallel'],
    [['up', '--on-start-failure', 'stop'], 'Allowed choices are continue, abort'],
    [['up', '--colour'], 'unknown option'],
  ])('rejects %j', async (words, complaint) => {
    const { code, stdout, stderr } = await runCli(words);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(complaint);
  });

  it('reports usage errors as JSON with --json', async () => {
    const { code, stdout, stderr } = await runCli(['ls', 'people', '--json']);
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: 'usage', message: expect.stringContaining("'people' is invalid") },
    });
  });
});

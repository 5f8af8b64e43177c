import { describe, expect, it } from 'vitest';
import { box, fileWith, start } from './project-commands.ts';

describe('the command line for projects', () => {
  it('adds, lists, shows, changes and removes a project', async () => {
    const { cli, done, json, names, switchboard } = await start();
    expect(await done('project', 'ls')).toMatch(/^default +1 server/);
    expect(await done('project', 'add', 'research', '--description', 'Ours')).toBe(
      `added project research; clients reach it at ${switchboard.baseUrl}/mcp/research\n${switchboard.baseUrl}/mcp has the servers of all projects\n`,
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
    expect(await done('project', 'set', 'research', ...words)).toMatch(/retention +unlimited/);
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

  it('reports why a server is unusable, and which setting is wrong', async () => {
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

  it('stores secrets, which reach only the server', async () => {
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
});

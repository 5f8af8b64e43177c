import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { runWith } from '../../test/helpers/cli-api.ts';
import { serverView } from '../../test/helpers/server-view.ts';

const project = {
  id: '0190f3a0-0000-7000-8000-000000000001',
  name: 'research',
  description: null,
  record_payloads: false,
  retention_days: 30,
  names: 'model-safe',
  server_count: 2,
  version: 4,
  created_at: '2030-01-01T12:00:00.000Z',
};

const server = {
  ...serverView({ name: 'files', transport: 'stdio' }),
  project: 'research',
  source: 'api',
  product: null,
  description: 'Reads files',
  config: { command: 'npx', args: ['-y', 'a file'], env: { KEY: `\${KEY}` }, cwd: '/srv' },
  enabled: true,
  replica_count: 1,
  concurrency: 32,
  isolation: 'shared',
  timeout_ms: 30_000,
  max_timeout_ms: 600_000,
  idle_stop_ms: 0,
  prefix: null,
  version: 7,
};

function fileWith(contents: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'file');
  writeFileSync(path, contents);
  return path;
}

describe('switchboard project', () => {
  it('lists, shows, adds and changes projects', async () => {
    const { stdout } = await runWith({ 'GET /projects': { projects: [project] } }, 'project', 'ls');
    expect(stdout).toBe('research  2 servers\n');
    const shown = await runWith({ 'GET /projects/research': project }, 'project', 'show', 'research');
    expect(shown.stdout).toContain('retention   30 days\n');
    const added = await runWith(
      { 'POST /projects': project },
      ...['project', 'add', 'research', '--description', 'Ours', '--retention-days', 'never', '--json'],
    );
    expect(JSON.parse(added.stdout)).toEqual(project);
    expect(added.requests).toEqual([
      'POST /projects {"description":"Ours","retention_days":null,"name":"research"}',
    ]);
    const changed = await runWith(
      { 'PATCH /projects/a%20b': project },
      ...['project', 'set', 'a b', '--record-payloads', 'on', '--description', ''],
    );
    expect(changed.requests).toEqual(['PATCH /projects/a%20b {"description":null,"record_payloads":true}']);
  });

  it('needs --yes to remove a project without a terminal', async () => {
    const answers = { 'GET /projects/research': project, [`DELETE /projects/${project.id}`]: null };
    const refused = await runWith(answers, 'project', 'rm', 'research');
    expect(refused).toMatchObject({ code: 2, requests: ['GET /projects/research'] });
    expect(refused.stderr).toContain('use --yes');
    const removed = await runWith(answers, 'project', 'rm', 'research', '--yes');
    expect(removed).toMatchObject({ code: 0, stdout: 'removed project research\n' });
    expect(removed.requests.at(-1)).toBe(`DELETE /projects/${project.id} if "4"`);
  });

  it('requires at least one change', async () => {
    expect(await runWith({}, 'project', 'set', 'research')).toMatchObject({ code: 2, requests: [] });
  });
});

describe('switchboard server', () => {
  const path = '/projects/research/servers';

  it('adds everything after -- as the command', async () => {
    const { code, stdout, requests } = await runWith(
      { [`POST ${path}`]: server },
      ...['server', 'add', 'files', '-P', 'research', '-e', 'A=b', '--no-test'],
      ...['--', 'npx', '--json', '-y', 'x'],
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'added server files to project research\n' });
    expect(requests).toEqual([
      `POST ${path} {"name":"files","transport":"stdio","config":{"command":"npx","args":["--json","-y","x"],"env":{"A":"b"}}}`,
    ]);
  });

  it('shows all details', async () => {
    const { stdout } = await runWith(
      { [`GET ${path}/files`]: server },
      'server',
      'show',
      'files',
      '-P',
      'research',
    );
    expect(stdout).toContain('command      npx -y "a file"\n');
    expect(stdout).toContain(`env          KEY=\${KEY}\n`);
    const list = await runWith({ [`GET ${path}`]: { servers: [server] } }, 'server', 'ls', '-P', 'research');
    expect(list.stdout).toBe('files  ready  stdio  api  3 tools\n');
  });

  it('changes the version that it has read', async () => {
    const answers = { [`GET ${path}/files`]: server, [`PATCH ${path}/files`]: server };
    const { requests } = await runWith(answers, 'server', 'set', 'files', '-P', 'research', '--prefix', 'f');
    expect(requests[1]).toBe(`PATCH ${path}/files if "7" {"prefix":"f"}`);
  });

  it.each([
    ['enable', '{"enabled":true}'],
    ['disable', '{"enabled":false}'],
  ])('%s switches it', async (word, body) => {
    const { requests } = await runWith(
      { [`PATCH ${path}/files`]: { ...server, enabled: word === 'enable' } },
      ...['server', word, 'files', '-P', 'research'],
    );
    expect(requests).toEqual([`PATCH ${path}/files ${body}`]);
  });

  it('uses the project "default" if none is named', async () => {
    const answers = { 'DELETE /projects/default/servers/files': null };
    expect(await runWith(answers, 'server', 'rm', 'files')).toMatchObject({ code: 0 });
  });

  it('fails if the test of a server fails', async () => {
    const result = { duration_ms: 12, tools: 3, resources: 0, prompts: 0, error: null };
    const info = { name: 'files-server', version: '1.0' };
    const tested = (answer: object) =>
      runWith({ [`POST ${path}/files/test`]: answer }, 'server', 'test', 'files', '-P', 'research');
    expect(await tested({ ...result, ok: true, server_info: info })).toMatchObject({
      code: 0,
      stdout: 'files answers: 3 tools, 0 resources, 0 prompts (files-server 1.0, 12 ms)\n',
    });
    expect(await tested({ ...result, ok: false, server_info: null, error: 'it exited' })).toMatchObject({
      code: 1,
      stderr: 'files cannot be used: it exited\n',
    });
  });

  it('passes on the API’s error', async () => {
    expect(await runWith({}, 'server', 'show', 'nobody')).toMatchObject({
      code: 1,
      stderr: 'error: There is nothing at /projects/default/servers/nobody.\n',
    });
    const { stdout } = await runWith({}, 'server', 'show', 'nobody', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'not_found' } });
  });
});

describe('switchboard secret', () => {
  const path = '/projects/default/secrets';
  const secret = { name: 'TOKEN', updated_at: project.created_at, used_by: ['files', 'github'] };

  it('reads a value from a variable or a file, without the trailing line break', async () => {
    vi.stubEnv('SWITCHBOARD_TEST_TOKEN', 'hunter2');
    onTestFinished(() => void vi.unstubAllEnvs());
    const answers = { [`PUT ${path}/TOKEN`]: secret };
    const fromEnv = await runWith(
      answers,
      ...['secret', 'set', 'TOKEN', '--from-env', 'SWITCHBOARD_TEST_TOKEN'],
    );
    expect(fromEnv.requests).toEqual([`PUT ${path}/TOKEN {"value":"hunter2"}`]);
    expect(fromEnv.stdout).toBe('secret TOKEN is set, used by files, github\n');
    const fromFile = await runWith(answers, 'secrets', 'set', 'TOKEN', '--from-file', fileWith('a\nb\r\n'));
    expect(fromFile.requests).toEqual([`PUT ${path}/TOKEN {"value":"a\\nb"}`]);
  });

  it.each([
    [['TOKEN', 'hunter2'], 'in the process list'],
    [['TOKEN=hunter2'], 'in the process list'],
    [['TOKEN', '--from-env', 'NO_SUCH_VARIABLE'], 'NO_SUCH_VARIABLE is not set'],
    [['TOKEN', '--from-env', 'A', '--from-file', 'b'], 'cannot be combined'],
    [['TOKEN', '--from-file', '/no/such/file'], 'Cannot read /no/such/file'],
    [['TOKEN', '--from-file', '/dev/null'], 'is empty'],
  ])('rejects %j', async (words, reason) => {
    const { code, stderr, requests } = await runWith({}, 'secret', 'set', ...words);
    expect({ code, requests }).toEqual({ code: 2, requests: [] });
    expect(stderr).toContain(reason);
    expect(stderr).not.toContain('hunter2');
  });

  it('lists, removes and rotates secrets', async () => {
    const list = await runWith({ [`GET ${path}`]: { secrets: [secret] } }, 'secret', 'ls');
    expect(list.stdout).toMatch(/^TOKEN {2}2030-01-01 \d\d:\d\d:\d\d {2}used by files, github\n$/);
    const unused = { [`GET ${path}`]: { secrets: [{ ...secret, used_by: [] }] } };
    const removal = { [`DELETE ${path}/TOKEN`]: null };
    expect(await runWith({ ...unused, ...removal }, 'secret', 'rm', 'TOKEN')).toMatchObject({
      code: 0,
      stdout: 'removed secret TOKEN\n',
    });
    const rotated = await runWith(
      { 'POST /secrets/rotate': { rotated: 1, key_id: 'k2' } },
      'secrets',
      'rotate',
    );
    expect(rotated.stdout).toBe('encrypted 1 secret with the new key k2\n');
  });

  it('removes a secret in use only with --yes', async () => {
    const answers = { [`GET ${path}`]: { secrets: [secret] }, [`DELETE ${path}/TOKEN`]: null };
    const refused = await runWith(answers, 'secret', 'rm', 'TOKEN');
    expect(refused).toMatchObject({ code: 2, requests: [`GET ${path}`] });
    expect(refused.stderr).toContain('The secret TOKEN is used by files, github, which cannot run without');
    const meant = await runWith(answers, 'secret', 'rm', 'TOKEN', '--yes');
    expect(meant).toMatchObject({ code: 0, requests: [`DELETE ${path}/TOKEN`] });
  });
});

describe('switchboard product', () => {
  const path = '/projects/default/products';
  const product = { name: 'acme', version: '2', servers: ['a', 'b'], updated_at: project.created_at };

  it('installs a manifest and shows the changes', async () => {
    const manifest = { name: 'acme', version: '2', mcp: { servers: [] } };
    const done = { product, added: ['a'], changed: ['b'], removed: ['c'], unchanged: ['d', 'e'] };
    const { stdout, requests } = await runWith(
      { [`POST ${path}`]: done },
      ...['product', 'install', fileWith(JSON.stringify(manifest))],
    );
    expect(stdout).toBe('product acme 2: 2 servers unchanged\n  + a\n  ~ b\n  - c\n');
    expect(requests).toEqual([`POST ${path} ${JSON.stringify(manifest)}`]);
    const same = { product, added: [], changed: [], removed: [], unchanged: ['a'] };
    const again = await runWith({ [`POST ${path}`]: same }, 'product', 'install', fileWith('{}'));
    expect(again.stdout).toBe('product acme 2: nothing changed, 1 server unchanged\n');
  });

  it.each([
    ['{', 'is not valid JSON'],
    ['[]', 'is not a manifest'],
  ])('rejects the manifest %s', async (contents, reason) => {
    const { code, stderr } = await runWith({}, 'product', 'install', fileWith(contents));
    expect(code).toBe(2);
    expect(stderr).toContain(reason);
  });

  it('lists and removes products', async () => {
    const list = await runWith({ [`GET ${path}`]: { products: [product] } }, 'product', 'ls');
    expect(list.stdout).toMatch(/^acme {2}2 {2}2030-01-01 \S+ {2}a, b\n$/);
    expect(await runWith({ [`DELETE ${path}/acme`]: null }, 'product', 'rm', 'acme')).toMatchObject({
      code: 0,
    });
  });
});

describe('switchboard tool', () => {
  const path = '/projects/default/tools';
  const tools = [
    {
      name: 'read',
      qualified_name: 'files__read',
      server: 'files',
      description: 'Reads\u0007',
      enabled: true,
    },
    { name: 'files__drop', server: 'files', tool: 'drop', description: null, enabled: false },
  ];

  it('lists the visible tools, or all', async () => {
    const answers = { [`GET ${path}`]: { tools } };
    expect((await runWith(answers, 'tool', 'ls')).stdout).toBe('read  files  Reads\\u0007\n');
    expect((await runWith(answers, 'tool', 'ls', '--all')).stdout).toBe(
      'read         files  on   Reads\\u0007\nfiles__drop  files  off\n',
    );
  });

  it('switches one tool', async () => {
    const answers = { [`PATCH ${path}/files__drop`]: { ...tools[1], enabled: true } };
    const { stdout, requests } = await runWith(answers, 'tool', 'enable', 'files__drop');
    expect(stdout).toBe('drop of files is enabled\n');
    expect(requests).toEqual([`PATCH ${path}/files__drop {"enabled":true}`]);
  });
});

describe('switchboard tool with a pattern', () => {
  const path = '/projects/default/tools';
  const toolOf = (server: string, tool: string, enabled: boolean) => ({
    ...{ name: `${server}__${tool}`, qualified_name: `${server}__${tool}`, server, tool, enabled },
    description: null,
  });

  it("matches the servers' own tool names, even if they are listed with a prefix", async () => {
    const tools = [
      toolOf('a', 'delete_file', true),
      toolOf('b', 'delete_file', true),
      toolOf('b', 'read', true),
    ];
    const answers = {
      [`GET ${path}`]: { tools },
      [`PATCH ${path}/a__delete_file`]: toolOf('a', 'delete_file', false),
      [`PATCH ${path}/b__delete_file`]: toolOf('b', 'delete_file', false),
    };
    expect((await runWith(answers, 'tool', 'disable', 'delete_*')).stdout).toBe(
      'delete_file of a is disabled\ndelete_file of b is disabled\n',
    );
  });

  it('continues after a tool that its server leaves out', async () => {
    const message = 'The tool "drop" is off by the setting "tools" of the server "a": change it there.';
    const answers = {
      [`GET ${path}`]: { tools: [toolOf('a', 'drop', false), toolOf('b', 'drop', false)] },
      [`PATCH ${path}/a__drop`]: (response: ServerResponse) =>
        response
          .writeHead(409, { 'content-type': 'application/json' })
          .end(JSON.stringify({ error: { code: 'conflict', message, details: {} } })),
      [`PATCH ${path}/b__drop`]: toolOf('b', 'drop', true),
    };
    expect(await runWith(answers, 'tool', 'enable', '*')).toMatchObject({
      code: 0,
      stdout: 'drop of b is enabled\n',
      stderr: `note: ${message}\n`,
    });
  });

  it('reports that nothing matches', async () => {
    const answers = { [`GET ${path}`]: { tools: [toolOf('a', 'drop', false), toolOf('b', 'drop', false)] } };
    expect((await runWith(answers, 'tool', 'disable', 'd*')).stdout).toBe(
      'nothing to change: already disabled: drop of a, drop of b\n',
    );
  });
});

describe('switchboard calls', () => {
  const callOf = (id: number) => ({
    id: String(id),
    client: null,
    method: 'tools/call',
    server: 'files',
    replica: null,
    tool: `tool${id}`,
    status: 'ok',
    duration_ms: 1,
    input_bytes: 2,
    output_bytes: 3,
    error: null,
    created_at: project.created_at,
  });
  const path = '/projects/default/calls';

  it('shows the requested number, page by page, the newest last', async () => {
    const answers = {
      [`GET ${path}?server=files&status=ok&limit=3`]: {
        calls: [callOf(3), callOf(2)],
        next_cursor: 'c',
        dropped: 0,
      },
      [`GET ${path}?server=files&status=ok&limit=1&cursor=c`]: {
        calls: [callOf(1)],
        next_cursor: 'd',
        dropped: 5,
      },
    };
    const words = ['calls', '--server', 'files', '--status', 'ok', '--limit', '3'];
    const { stdout, stderr } = await runWith(answers, ...words);
    expect(stdout.match(/tool\d/g)).toEqual(['tool1', 'tool2', 'tool3']);
    expect(stderr).toBe('note: 5 calls were not recorded since Switchboard started\n');
    const json = JSON.parse((await runWith(answers, ...words, '--json')).stdout);
    expect(json.map(({ id }: { id: string }) => id)).toEqual(['3', '2', '1']);
  });

  it('reports that there are none', async () => {
    const answers = { [`GET ${path}?limit=50`]: { calls: [], next_cursor: null, dropped: 0 } };
    expect((await runWith(answers, 'calls')).stdout).toBe('no calls\n');
  });
});

describe('switchboard import --project', () => {
  const path = '/projects/research/import';

  it('sends the servers with what they need, and prints the next steps', async () => {
    const file = fileWith(
      JSON.stringify({
        servers: { files: { command: './run', description: 'Reads', env: { A: `\${input:api-key}` } } },
      }),
    );
    const { code, stdout, stderr, requests } = await runWith(
      { [`POST ${path}?replace=true`]: { imported: ['files'], notes: ['files: from there'] } },
      ...['import', file, '--project', 'research', '--force'],
    );
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: '1 server added to or replaced in project research: files\n',
    });
    expect(stderr.split('\n').filter((line) => line !== '')).toEqual([
      expect.stringContaining('note: files: "command" was relative'),
      'note: files: set the secret api_key: Switchboard does not prompt for inputs',
      'note: files: from there',
    ]);
    const body = requests[0]!.slice(requests[0]!.indexOf('{'));
    expect(JSON.parse(body)).toEqual({
      mcpServers: {
        files: { command: join(file, '../run'), description: 'Reads', env: { A: `\${api_key}` } },
      },
    });
  });

  it('rejects an empty file and two destinations', async () => {
    const empty = await runWith({}, 'import', fileWith('{"mcpServers": {"a": {}}}'), '--project', 'research');
    expect(empty).toMatchObject({ code: 2, requests: [] });
    expect(empty.stderr).toContain('left out: a: has neither');
    const both = await runWith({}, 'import', 'x', '--project', 'research', '--config', 'y');
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('not both') });
  });
});

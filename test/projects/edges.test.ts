import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { Site } from './site.ts';
import { textOfCall } from './test-client.ts';

const stdio = fixtureServer('toolbox');

describe('unusual configurations', () => {
  let site: Site;
  setUp(async (use) => {
    site = use(await Site.start('server', { mcpServers: { box: stdio } }));
  });

  it('a server with only a maximum timeout starts, and its default timeout is lowered to it', async () => {
    const project = await site.project();
    const made = await project.add('box', { max_timeout_ms: 1_000 });
    expect(made).toMatchObject({ timeout_ms: 1_000, max_timeout_ms: 1_000 });
    expect(await project.done('DELETE /servers/box')).toEqual({});
  });

  it('a setting in the file does not invalidate stored servers', async () => {
    const project = await site.project();
    await project.add('box', { max_timeout_ms: 40_000 });
    await site.configured({ mcpServers: { box: stdio }, switchboard: { timeoutMs: 90_000 } });
    expect(await project.server('box')).toMatchObject({ timeout_ms: 40_000, state: 'idle' });
    await site.configured({ mcpServers: { box: stdio } });
  });

  it('an invalid row is shown with the reason, and can be repaired and removed', async () => {
    const project = await site.project();
    await site.query(
      `INSERT INTO kb.project_mcp_servers (project_id, name, transport, config) VALUES ($1, 'odd', 'stdio', '{}')`,
      [project.id],
    );
    await site.warning(new RegExp(`Project "${project.name}": .*odd`));
    expect(await project.server('odd')).toMatchObject({
      state: 'failed',
      error: expect.stringContaining('"command"'),
    });
    expect((await project.ask('POST /servers/odd/test')).body.error).toMatchObject({
      code: 'invalid_config',
    });
    await project.change('odd', { config: stdio });
    expect(await project.done('POST /servers/odd/test')).toMatchObject({ ok: true });
    await project.done('DELETE /servers/odd');
  });

  it('an update without changes has no effect', async () => {
    const project = await site.defaultProject();
    await project.change('box', { enabled: false });
    expect(await project.change('box', {})).toMatchObject({ enabled: false, state: 'disabled' });
    await project.change('box', { enabled: true });
    expect((await project.ask('PATCH /servers/box', { enabled: false }, { 'if-match': '"1"' })).status).toBe(
      412,
    );
  });

  it('servers of a project run in an empty folder, apart from the database and the keys', async () => {
    const project = await site.project();
    await project.done('POST /servers', {
      name: 'here',
      transport: 'stdio',
      config: { command: 'sh', args: ['-c', 'echo "error in $(pwd): $(ls | wc -l)" >&2; exit 1'] },
    });
    const { error } = await project.done<{ error: string }>('POST /servers/here/test');
    expect(error).toContain(`error in ${site.home}/servers/${project.id}: 0`);
  });

  it('an edit of the file without changes notifies no client', async () => {
    const project = await site.project();
    const client = await project.client();
    await client.settled(() => project.add('box'));
    const before = client.stream.events.items.length;
    await site.configured({ mcpServers: { box: stdio }, edit: 'of nothing' });
    await client.toolsAfter(() => project.change('box', { enabled: false }));
    const changes = client.stream.events.items
      .slice(before)
      .filter(({ message }) => message?.method === 'notifications/tools/list_changed');
    expect(changes).toHaveLength(1);
  });

  it('a call finishes after its project is removed, and then the client is rejected', async () => {
    const project = await site.createProject('passing');
    await project.add('box');
    const client = await project.client();
    await client.tools();
    const call = await client.waitingCall();
    await site.done('DELETE /projects/passing');
    await expect(client.tools()).rejects.toThrow();
    site.witness.tell(project.who('box'), 'go');
    expect(await textOfCall(call)).toBe('waited');
  });

  it('a trailing slash in an address makes no difference', async () => {
    const session = await RawSession.open(`${site.baseUrl}/mcp/`);
    const same = await RawSession.open(`${site.baseUrl}/mcp`);
    expect(await session.toolNames()).toEqual(await same.toolNames());
  });

  it('an import accepts the names of built-in object properties', async () => {
    const project = await site.project();
    const mcpServers = { constructor: { command: 'node', disabled: true } };
    expect(await project.done('POST /import', { mcpServers })).toMatchObject({ imported: ['constructor'] });
  });

  it('an import lists the secrets that still have to be set', async () => {
    const project = await site.project();
    const { notes } = await project.done<{ notes: string[] }>('POST /import', {
      mcpServers: {
        hub: { url: 'https://hub.example/mcp', headers: { Authorization: `Bearer \${HUB_TOKEN}` } },
        box: { command: 'node', args: [`\${FOLDER:-/srv}`, `\${workspaceFolder}`], disabled: true },
      },
    });
    expect(notes).toEqual([
      `box: replace \${workspaceFolder} with a path: only an editor can resolve it`,
      'hub: set the secret HUB_TOKEN',
    ]);
    const { error } = await project.done<{ error: string }>('POST /servers/hub/test');
    expect(error).toContain(`switchboard secret set HUB_TOKEN -P ${project.name}`);
  });
});

describe('while Switchboard stops', () => {
  it('starts nothing that another process adds, and exits', async () => {
    await using one = await Site.start('server');
    const { databaseUrl } = one.switchboard;
    await using two = await Site.start(
      'server',
      (witness) => ({
        mcpServers: {
          slow: { ...fixtureServer('ignores-sigterm', witness.env('slow')), startup: 'parallel' },
        },
      }),
      { url: databaseUrl! },
    );
    const project = await two.defaultProject();
    await project.reaches('slow', ({ state }) => state === 'ready');
    const exited = once(two.switchboard.process, 'exit');
    two.switchboard.process.kill('SIGTERM');
    await two.witness.sees('slow', 'stdin end');
    await one.done('POST /projects/default/servers', {
      name: 'late',
      transport: 'stdio',
      config: fixtureServer('ignores-sigterm', two.witness.env('late')),
      startup: 'parallel',
    });
    expect(await exited).toEqual([0, null]);
  });

  it('ends a server test in progress', async () => {
    await using site = await Site.start('server');
    const project = await site.defaultProject();
    await project.done('POST /servers', {
      name: 'mute',
      transport: 'stdio',
      config: fixtureServer('never-responds'),
    });
    const test = project.ask('POST /servers/mute/test').catch(() => 'cut off');
    // By the time this is answered, the test is in progress.
    await project.ask('GET /servers');
    const exited = once(site.switchboard.process, 'exit');
    site.switchboard.process.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    await test;
  });
});

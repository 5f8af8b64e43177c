import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { Site } from './site.ts';
import { textOfCall } from './test-client.ts';

const stdio = fixtureServer('toolbox');

describe('at the edges of what can be written down', () => {
  let site: Site;
  setUp(async (use) => {
    site = use(await Site.start('server', { mcpServers: { box: stdio } }));
  });

  it('a server with only an upper limit of time is there, and the usual one is lowered to it', async () => {
    const project = await site.project();
    const made = await project.add('box', { max_timeout_ms: 1_000 });
    expect(made).toMatchObject({ timeout_ms: 1_000, max_timeout_ms: 1_000 });
    expect(await project.done('DELETE /servers/box')).toEqual({});
  });

  it('a setting of the file does not make stored servers wrong', async () => {
    const project = await site.project();
    await project.add('box', { max_timeout_ms: 40_000 });
    await site.configured({ mcpServers: { box: stdio }, switchboard: { timeoutMs: 90_000 } });
    expect(await project.server('box')).toMatchObject({ timeout_ms: 40_000, state: 'idle' });
    await site.configured({ mcpServers: { box: stdio } });
  });

  it('a row that cannot be a server is shown with why, and can be mended and removed', async () => {
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

  it('a change that changes nothing changes nothing', async () => {
    const project = await site.defaultProject();
    await project.change('box', { enabled: false });
    expect(await project.change('box', {})).toMatchObject({ enabled: false, state: 'disabled' });
    await project.change('box', { enabled: true });
    expect((await project.ask('PATCH /servers/box', { enabled: false }, { 'if-match': '"1"' })).status).toBe(
      412,
    );
  });

  it('servers of a project run where neither the database nor the keys are', async () => {
    const project = await site.project();
    await project.done('POST /servers', {
      name: 'here',
      transport: 'stdio',
      config: { command: 'sh', args: ['-c', 'echo "error in $(pwd): $(ls | wc -l)" >&2; exit 1'] },
    });
    const { error } = await project.done<{ error: string }>('POST /servers/here/test');
    expect(error).toContain(`error in ${site.home}/servers/${project.id}: 0`);
  });

  it('an edit of the file that changes nothing is told to nobody', async () => {
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

  it('a call of a client whose project is removed finishes, and the client is let in no more', async () => {
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

  it('an address with a slash behind it is the same', async () => {
    const session = await RawSession.open(`${site.baseUrl}/mcp/`);
    const same = await RawSession.open(`${site.baseUrl}/mcp`);
    expect(await session.toolNames()).toEqual(await same.toolNames());
  });

  it('an import takes names that every object has', async () => {
    const project = await site.project();
    const mcpServers = { constructor: { command: 'node', disabled: true } };
    expect(await project.done('POST /import', { mcpServers })).toMatchObject({ imported: ['constructor'] });
  });

  it('an import says which secrets are still to be set', async () => {
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

describe('while it stops', () => {
  it('starts nothing that another process adds, and ends', async () => {
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

  it('ends what is tried out just then', async () => {
    await using site = await Site.start('server');
    const project = await site.defaultProject();
    await project.done('POST /servers', {
      name: 'mute',
      transport: 'stdio',
      config: fixtureServer('never-responds'),
    });
    const test = project.ask('POST /servers/mute/test').catch(() => 'cut off');
    // Until it is known to be under way.
    await project.ask('GET /servers');
    const exited = once(site.switchboard.process, 'exit');
    site.switchboard.process.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    await test;
  });
});

import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ServerView, ToolView } from '../../src/api/views.ts';
import { bothTypes, exchange, initialize, RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { databases, Site, type TestProject } from './site.ts';
import { TestClient, textOfCall } from './test-client.ts';

const toolsOfBox = ['echo', 'pid', 'environment', 'progress', 'wait', 'log', 'add', 'flood'];

describe.each(databases)('while clients are connected (%s database)', (kind) => {
  let site: Site;

  setUp(async (use) => {
    site = use(await Site.start(kind));
  });

  describe('a change through the API', () => {
    it('[A10] announces a new server, lists its tools and calls them', async () => {
      const project = await site.project();
      const client = await project.client();
      expect(await client.tools()).toEqual([]);
      expect(await client.toolsAfter(() => project.add('box'))).toEqual(toolsOfBox);
      expect(await client.session.callText('echo', { text: 'there' })).toBe('there');
    });

    it('[A10] [A11] disables and enables a server, and its tools go and come back', async () => {
      const project = await site.project();
      const client = await project.client();
      await client.settled(() => project.add('box'));
      const pid = await client.session.callText('pid');

      expect(await client.toolsAfter(() => project.change('box', { enabled: false }))).toEqual([]);
      for (const name of ['echo', 'box__echo']) {
        expect(await client.errorOf(name)).toMatchObject({
          code: -32602,
          message: `Unknown tool: ${name} (its server "box" is disabled; enable it with: switchboard server enable box -P ${project.name})`,
        });
      }
      expect(await project.server('box')).toMatchObject({ enabled: false, state: 'disabled', replicas: [] });
      await site.witness.sees(project.who('box'), 'end', (sighting) => String(sighting.pid) === pid);

      expect(await client.toolsAfter(() => project.change('box', { enabled: true }))).toEqual(toolsOfBox);
      expect(await client.session.callText('echo', { text: 'back' })).toBe('back');
    });

    it('[A10] hides a server that is added disabled until it is enabled', async () => {
      const project = await site.project();
      await project.add('box', { enabled: false });
      const client = await project.client();
      expect(await client.tools()).toEqual([]);
      expect(site.witness.seenBy(project.who('box'), 'start')).toEqual([]);
      expect(await client.toolsAfter(() => project.change('box', { enabled: true }))).toEqual(toolsOfBox);
    });

    it('[A11] removes a server and ends its process', async () => {
      const project = await site.project();
      await project.add('box');
      await project.add('notes', { fixture: 'notes' });
      const client = await project.client();
      await client.toolsOnce((names) => names.includes('echo') && names.includes('touch'));
      expect(await client.toolsAfter(() => project.done('DELETE /servers/box'))).toEqual([
        'touch',
        'refer',
        'announce',
      ]);
      expect(await client.errorOf('box__echo')).toMatchObject({ message: 'Unknown tool: box__echo' });
      await site.witness.sees(project.who('box'), 'end');
      expect((await project.ask('GET /servers/box')).body.error).toMatchObject({ code: 'not_found' });
    });

    it.each([
      ['disabled', (project: TestProject) => project.change('box', { enabled: false })],
      ['removed', (project: TestProject) => project.done('DELETE /servers/box')],
      [
        'changed',
        (project: TestProject) =>
          project.change('box', { config: fixtureServer('toolbox', site.witness.env('another')) }),
      ],
    ])('[A11] lets a call in flight finish when its server is %s', async (what, change) => {
      const project = await site.project();
      await project.add('box');
      const client = await project.client();
      const pid = await client.session.callText('pid');
      const call = await client.waitingCall();
      await client.toolsAfter(() => change(project));
      if (what !== 'changed') expect(await client.errorOf('echo')).toMatchObject({ code: -32602 });
      else expect(await client.session.callText('pid')).not.toBe(pid);
      site.witness.tell(project.who('box'), 'go');
      expect(await textOfCall(call)).toBe('waited');
      await site.witness.sees(project.who('box'), 'end', (sighting) => String(sighting.pid) === pid);
    });

    it('restarts a changed server, and no other', async () => {
      const project = await site.project();
      await project.add('box', { env: { COLOUR: 'red' } });
      await project.add('other', { prefix: 'other' });
      const client = await project.client();
      await client.toolsOnce((names) => names.includes('other__pid'));
      const pids = await Promise.all(['box__pid', 'other__pid'].map((tool) => client.session.callText(tool)));

      const config = fixtureServer('toolbox', { ...site.witness.env(project.who('box')), COLOUR: 'blue' });
      await client.toolsAfter(() => project.change('box', { config }));
      expect(await client.session.callText('box__environment', { name: 'COLOUR' })).toBe('blue');
      expect(await client.session.callText('box__pid')).not.toBe(pids[0]);
      expect(await client.session.callText('other__pid')).toBe(pids[1]);
    });

    it('keeps the process if the change needs no restart', async () => {
      const project = await site.project();
      await project.add('box');
      await project.add('other');
      const client = await project.client();
      await client.toolsOnce((names) => names.includes('box__pid'));
      const pid = await client.session.callText('box__pid');
      await project.change('box', { description: 'A box of tools', timeout_ms: 5_000, labels: { a: 'b' } });
      expect(await client.session.callText('box__pid')).toBe(pid);
      const names = await client.toolsAfter(() => project.change('box', { prefix: 'tools' }));
      expect(names).toContain('tools__pid');
      expect(names).not.toContain('box__pid');
      expect(await client.session.callText('tools__pid')).toBe(pid);
    });

    it('[P8] keeps original tool names if the project says so, and announces that at once', async () => {
      const project = await site.project();
      const client = await project.client();
      await client.settled(() => project.add('box'));
      await client.session.callText('add', { name: 'b-one.x' });
      expect(await client.toolsOnce((names) => names.includes('b-one_x'))).not.toContain('b-one.x');
      const names = await client.toolsAfter(() => project.done('PATCH ', { names: 'as-is' }));
      expect(names).toContain('b-one.x');
      expect(names).not.toContain('b-one_x');
    });

    it('keeps the disabled tools of a renamed server', async () => {
      const project = await site.project();
      const client = await project.client();
      await client.settled(() => project.add('box'));
      await project.done('PATCH /tools/echo', { enabled: false });
      await client.toolsAfter(() => project.change('box', { name: 'chest' }));
      expect(await client.toolsOnce((names) => names.includes('pid'))).not.toContain('echo');
      expect(await client.session.callText('chest__pid')).toMatch(/^\d+$/);
      expect(await client.errorOf('box__pid')).toMatchObject({ code: -32602 });
    });

    it('[A12] disables and enables a tool, announced each time, without a restart', async () => {
      const project = await site.project();
      const client = await project.client();
      await client.settled(() => project.add('box'));
      const pid = await client.session.callText('pid');

      const off = () => project.done<ToolView>('PATCH /tools/echo', { enabled: false });
      expect(await client.toolsAfter(off)).toEqual(toolsOfBox.filter((name) => name !== 'echo'));
      for (const name of ['echo', 'box__echo']) {
        expect(await client.errorOf(name)).toMatchObject({
          code: -32602,
          message: `Unknown tool: ${name} (it is switched off)`,
        });
      }
      const { tools } = await project.done<{ tools: ToolView[] }>('GET /tools');
      expect(tools.filter(({ enabled }) => !enabled)).toMatchObject([
        { name: 'box__echo', qualified_name: 'box__echo', tool: 'echo', server: 'box' },
      ]);

      const on = () => project.done<ToolView>('PATCH /tools/box__echo', { enabled: true });
      expect(await client.toolsAfter(on)).toEqual(toolsOfBox);
      expect(await client.session.callText('echo', { text: 'on' })).toBe('on');
      expect(await client.session.callText('pid')).toBe(pid);
    });

    it('[A12] leaves the names of other tools unchanged', async () => {
      const project = await site.project();
      const client = await project.client();
      for (const name of ['one', 'two']) await project.add(name);
      await client.toolsOnce((names) => names.includes('two__echo'));
      await client.toolsAfter(() => project.done('PATCH /tools/one__echo', { enabled: false }));
      const names = await client.tools();
      expect(names).toContain('two__echo');
      expect(names).not.toContain('one__echo');
      expect(names).not.toContain('echo');
    });

    it('[A12] lets a call finish when its tool is disabled meanwhile', async () => {
      const project = await site.project();
      await project.add('box');
      const client = await project.client();
      const call = await client.waitingCall();
      await client.toolsAfter(() => project.done('PATCH /tools/wait', { enabled: false }));
      expect(await client.errorOf('wait')).toMatchObject({ code: -32602 });
      site.witness.tell(project.who('box'), 'go');
      expect(await textOfCall(call)).toBe('waited');
    });

    it('[A12] disables a tool of a group for all servers of the group', async () => {
      const project = await site.project();
      for (const name of ['one', 'two']) await project.add(name, { group: 'both' });
      const client = await project.client();
      await client.toolsOnce((names) => names.includes('echo'));
      await client.toolsAfter(() => project.done('PATCH /tools/echo', { enabled: false }));
      for (const name of ['echo', 'both__echo', 'one__echo', 'two__echo']) {
        expect(await client.errorOf(name)).toMatchObject({ code: -32602 });
      }
      expect(await client.tools()).not.toContain('echo');
    });

    it('[A12] keeps a tool disabled when its server joins a group', async () => {
      const project = await site.project();
      const client = await project.client();
      await client.settled(() => project.add('box'));
      await client.toolsAfter(() => project.done('PATCH /tools/echo', { enabled: false }));
      await client.toolsAfter(() => project.change('box', { group: 'boxes' }));
      expect(await client.tools()).not.toContain('echo');
      expect(await client.errorOf('boxes__echo')).toMatchObject({ code: -32602 });
      await client.toolsAfter(() => project.change('box', { group: null, prefix: 'b' }));
      expect(await client.tools()).not.toContain('echo');
    });

    it('announces resources, templates and prompts too', async () => {
      const project = await site.project();
      const client = await project.client();
      const announced = (['tools', 'resources', 'prompts'] as const).map((list) => client.announced(list));
      await project.add('notes', { fixture: 'notes', env: { NOTES_OF: 'ours' } });
      await Promise.all(announced);
      expect((await client.list('resources')).map(({ uri }) => uri)).toContain(
        'resource://notes/note://only/ours',
      );
      expect(await client.list('resourceTemplates')).toHaveLength(1);
      expect(await client.list('prompts')).toHaveLength(1);

      const gone = (['tools', 'resources', 'prompts'] as const).map((list) => client.announced(list));
      await project.change('notes', { enabled: false });
      await Promise.all(gone);
      for (const list of ['tools', 'resources', 'resourceTemplates', 'prompts'] as const) {
        expect(await client.list(list)).toEqual([]);
      }
    });

    it('shows why a server cannot be started, and starts it once that is fixed', async () => {
      const project = await site.project();
      const client = await project.client();
      await project.done('POST /servers', {
        name: 'box',
        transport: 'stdio',
        config: { command: '/no/such/program' },
      });
      expect(await client.tools()).toEqual([]);
      expect(await client.errorOf('box__echo')).toMatchObject({
        message: expect.stringContaining('"/no/such/program" was not found'),
      });
      expect((await project.server('box')).error).toContain('"/no/such/program" was not found');
      const mend = () => project.change('box', { config: fixtureServer('toolbox') });
      expect(await client.toolsAfter(mend, (names) => names.length > 0)).toEqual(toolsOfBox);
    });

    it('treats a row that was inserted with SQL as a server', async () => {
      const project = await site.project();
      const client = await project.client();
      const config = JSON.stringify(fixtureServer('toolbox'));
      const insert = () =>
        site.query(
          `INSERT INTO kb.project_mcp_servers (project_id, name, transport, config) VALUES ($1, 'box', 'stdio', $2)`,
          [project.id, config],
        );
      expect(await client.toolsAfter(insert, (names) => names.length > 0)).toEqual(toolsOfBox);
      const disable = () =>
        site.query('UPDATE kb.project_mcp_servers SET enabled = false WHERE project_id = $1', [project.id]);
      await client.toolsAfter(disable, (names) => names.length === 0);
      expect(await project.server('box')).toMatchObject({ enabled: false, version: 2 });
    });

    it('reports an invalid row with a warning, without affecting other servers', async () => {
      const project = await site.project();
      await project.add('box');
      await site.query(
        `INSERT INTO kb.project_mcp_servers (project_id, name, transport, config) VALUES ($1, 'odd', 'stdio', '{}')`,
        [project.id],
      );
      expect(await site.warning(new RegExp(`Project "${project.name}": .*odd`))).toContain('cannot be used');
      const client = await project.client();
      expect(await client.toolsOnce((names) => names.length > 0)).toEqual(toolsOfBox);
    });

    it('is reported in the events of the API', async () => {
      const project = await site.project();
      const { events } = await project.events();
      await project.add('box', { startup: 'parallel' });
      const serverIn = ({ event, data = '{}' }: { event?: string; data?: string }) =>
        event === 'server' ? (JSON.parse(data) as { server: ServerView }).server : undefined;
      const ready = await events.first((event) => serverIn(event)?.state === 'ready');
      expect(serverIn(ready)).toMatchObject({ name: 'box', project: project.name, source: 'api' });
      await project.done('DELETE /servers/box');
      await events.first((event) => serverIn(event)?.state === 'stopped');
    });
  });

  describe('a project that is removed', () => {
    it('ends the sessions of its clients and rejects new ones', async () => {
      const project = await site.project();
      const client = await project.client();
      await client.settled(() => project.add('box'));
      const events = await project.events();
      await site.done(`DELETE /projects/${project.name}`);

      await client.stream.ended;
      await events.ended;
      const refusal = await client.session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
      expect(refusal.status).toBe(404);
      expect(refusal.json?.error?.data).toMatchObject({ code: 'unknown_session' });
      const headers = { 'content-type': 'application/json', accept: bothTypes };
      const again = await exchange(project.url, { headers, body: initialize() });
      expect(again.status).toBe(404);
      expect(again.json?.error).toMatchObject({
        message: `There is no project "${project.name}".`,
        data: { code: 'unknown_project', project: project.name },
      });
      await site.witness.sees(project.who('box'), 'end');
      expect((await project.ask('GET /servers')).body.error).toMatchObject({ code: 'unknown_project' });
    });

    it('disappears for clients of all projects, whose calls in flight finish', async () => {
      const project = await site.project();
      await project.add('box');
      const client = await TestClient.open(`${site.baseUrl}/mcp`);
      await client.toolsOnce((names) => names.includes('wait'));
      const call = await client.waitingCall();
      expect(await client.toolsAfter(() => site.done(`DELETE /projects/${project.id}`))).toEqual([]);
      expect(await client.errorOf('wait')).toMatchObject({ message: 'Unknown tool: wait' });
      site.witness.tell(project.who('box'), 'go');
      expect(await textOfCall(call)).toBe('waited');
      await site.witness.sees(project.who('box'), 'end');
    });

    it('is fully deleted from the database', async () => {
      const project = await site.project();
      await project.add('box');
      await project.done('PUT /secrets/TOKEN', { value: 'something' });
      await project.done('PATCH /tools/echo', { enabled: false });
      await site.done(`DELETE /projects/${project.id}`);
      const tables = ['project_mcp_servers', 'secrets', 'switches', 'products', 'agent_run_tool_calls'];
      const counts = tables.map((table) => `(SELECT count(*)::int FROM kb.${table} WHERE project_id = $1)`);
      const [row] = await site.query<{ left: number }>(`SELECT ${counts.join(' + ')} AS left`, [project.id]);
      expect(row).toEqual({ left: 0 });
    });

    it('is never the default project', async () => {
      expect((await site.ask('DELETE /projects/default')).body.error).toMatchObject({ code: 'read_only' });
      expect((await site.ask('PATCH /projects/default', { name: 'other' })).body.error).toMatchObject({
        code: 'read_only',
      });
      await expect(site.query("DELETE FROM kb.projects WHERE name = 'default'")).rejects.toThrow('default');
    });
  });

  describe('servers in the configuration file', () => {
    let project: TestProject;
    const inFile = (name: string, more: object = {}) => ({
      ...fixtureServer('toolbox', { ...site.witness.env(name), COLOUR: 'red' }),
      ...more,
    });
    let edits = 0;
    const configured = (mcpServers: object) =>
      site.configured({ mcpServers, switchboard: { naming: 'always' }, edit: edits++ });

    beforeAll(async () => {
      project = await site.defaultProject();
    });

    it('belong to the project default, are marked, and can be changed only in the file', async () => {
      await configured({ box: inFile('box') });
      expect(await project.server('box')).toMatchObject({
        project: 'default',
        source: 'file',
        id: null,
        version: null,
        product: null,
        created_at: null,
        enabled: true,
        config: { env: { COLOUR: '***' } },
      });
      for (const changes of [{ prefix: 'b' }, { config: fixtureServer('notes') }, { name: 'chest' }]) {
        expect((await project.ask('PATCH /servers/box', changes)).body.error).toMatchObject({
          code: 'read_only',
          message: 'The server "box" is in the configuration file: change it there.',
        });
      }
      expect((await project.ask('DELETE /servers/box')).body.error).toMatchObject({ code: 'read_only' });
      const taken = { name: 'box', transport: 'stdio', config: fixtureServer('notes') };
      expect((await project.ask('POST /servers', taken)).body.error).toMatchObject({
        code: 'conflict',
        details: { names: ['box'] },
      });
      expect(await site.query('SELECT name FROM kb.project_mcp_servers')).toEqual([]);
    });

    it('[A10] [A11] [A12] are enabled and disabled through the API, with their tools, across edits and restarts', async () => {
      const servers = (colour: string) => ({
        box: inFile('box', { env: { ...inFile('box').env, COLOUR: colour } }),
        second: inFile('second', { env: { ...inFile('second').env, COLOUR: colour } }),
      });
      await configured(servers('red'));
      const client = await project.client();
      await client.toolsOnce((names) => names.includes('box__echo') && names.includes('second__echo'));
      const isLeft = (names: string[]) =>
        names.includes('second__pid') && !names.some((name) => /^box__|^second__echo$/.test(name));
      await project.done('PATCH /tools/second__echo', { enabled: false });
      await client.toolsAfter(() => project.change('box', { enabled: false }), isLeft);
      expect(await client.errorOf('box__echo')).toMatchObject({
        message:
          'Unknown tool: box__echo (its server "box" is disabled; enable it with: switchboard server enable box)',
      });
      expect(await project.server('box')).toMatchObject({
        enabled: false,
        state: 'disabled',
        source: 'file',
      });

      await configured(servers('blue'));
      await client.toolsOnce(isLeft);
      expect(await client.session.callText('second__environment', { name: 'COLOUR' })).toBe('blue');
      await site.restart();
      expect(await project.server('box')).toMatchObject({ enabled: false, state: 'disabled' });
      const after = await project.client();
      await after.toolsOnce(isLeft);

      await project.done('PATCH /tools/second__echo', { enabled: true });
      await after.toolsAfter(
        () => project.change('box', { enabled: true }),
        (names) => names.includes('box__echo') && names.includes('second__echo'),
      );
      expect(await after.session.callText('box__environment', { name: 'COLOUR' })).toBe('blue');
      expect(await site.query('SELECT * FROM kb.switches')).toEqual([]);
    });

    it('that are disabled in the file must be enabled in the file', async () => {
      await configured({ box: inFile('box', { enabled: false }) });
      expect((await project.ask('PATCH /servers/box', { enabled: true })).body.error).toMatchObject({
        code: 'read_only',
        message: 'The server "box" is in the configuration file: it is disabled there.',
      });
      expect(await project.server('box')).toMatchObject({ enabled: false, state: 'disabled' });
    });

    it('are reconciled on every edit, next to those of the API', async () => {
      await configured({ box: inFile('box') });
      await project.add('added', { who: 'added' });
      onTestFinished(() => project.done('DELETE /servers/added').then(() => {}));
      const client = await project.client();
      await client.toolsOnce((names) => names.includes('box__pid') && names.includes('added__pid'));
      const pids = await Promise.all(['box__pid', 'added__pid'].map((tool) => client.session.callText(tool)));
      const servers = async () => (await project.done<{ servers: ServerView[] }>('GET /servers')).servers;

      await client.toolsAfter(
        () => configured({ box: inFile('box'), second: inFile('second') }),
        (names) => names.includes('second__pid'),
      );
      expect((await servers()).map(({ name, source }) => [name, source])).toEqual([
        ['box', 'file'],
        ['second', 'file'],
        ['added', 'api'],
      ]);
      await client.toolsAfter(
        () => configured({ second: inFile('second') }),
        (names) => !names.includes('box__pid'),
      );
      await site.witness.sees('box', 'end', ({ pid }) => String(pid) === pids[0]);
      expect(await client.session.callText('added__pid')).toBe(pids[1]);
    });

    it('with the name of a stored one are skipped with a warning until the name is free', async () => {
      await configured({});
      await project.add('twice', { who: 'stored', env: { COLOUR: 'green' } });
      const session = await RawSession.open(project.url);
      await configured({ twice: inFile('twice'), box: inFile('box') });
      expect(await site.warning(/The server "twice" of the configuration file is ignored/)).toContain(
        'rename one of them',
      );
      expect(await project.server('twice')).toMatchObject({ source: 'api' });
      expect(await session.callText('twice__environment', { name: 'COLOUR' })).toBe('green');
      expect(await session.callText('box__environment', { name: 'COLOUR' })).toBe('red');

      await project.done('DELETE /servers/twice');
      expect(await project.server('twice')).toMatchObject({ source: 'file' });
      expect(await session.callText('twice__environment', { name: 'COLOUR' })).toBe('red');
    });
  });
});

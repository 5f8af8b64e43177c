import { describe, expect, it } from 'vitest';
import type { CallList } from '../../src/api/views.ts';
import { connectHttp, textOf, toolNamesOnce } from '../helpers/clients.ts';
import { sharedHostingSite, sharedProcessSite } from './hosting-site.ts';

describe('a server in a sandbox, in the catalog of its project', () => {
  const open = sharedHostingSite();

  it('[H1, H4] appears and disappears for gateway clients, who share its bridge with the API', async ({
    skip,
  }) => {
    const site = await open({ skip });
    const project = await site.site.createProject('hosting');
    await using connected = await connectHttp(project.url);
    const { client } = connected;
    expect((await client.listTools()).tools).toEqual([]);

    const input = {
      name: 'noting',
      project_id: 'hosting',
      image: await site.image('logs-lifecycle'),
      volumes: ['/data'],
    };
    const { id } = await site.host(input);
    await toolNamesOnce(connected, (names) => names.includes('notes'));
    const { tools } = await client.listTools();
    expect(tools.find(({ name }) => name === 'note')?._meta).toMatchObject({
      'dev.switchboard/server': 'noting',
    });
    await client.callTool({ name: 'note', arguments: { text: 'of a client' } });
    await site.tool(id, 'note', { text: 'of the API' });
    const notes = 'began\nof a client\nof the API\n';
    expect(textOf(await client.callTool({ name: 'notes', arguments: {} }))).toBe(notes);
    expect(await site.tool(id, 'notes')).toBe(notes);

    // A crash leaves its tools in the list, and the next call reaches the new instance.
    await expect(client.callTool({ name: 'crash', arguments: {} })).rejects.toThrow(/exited with code 70/);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('notes');
    await site.reaches(id, ({ status, restart_count }) => status === 'ready' && restart_count === 1);
    expect(textOf(await client.callTool({ name: 'notes', arguments: {} }))).toBe(`${notes}began\n`);

    await site.site.done(`POST /mcp/servers/${id}/stop`);
    await toolNamesOnce(connected, (names) => names.length === 0);
    await site.site.done(`POST /mcp/servers/${id}/start`);
    await toolNamesOnce(connected, (names) => names.includes('notes'));
    expect(await site.remove(id)).toMatchObject({ status: 204 });
    await toolNamesOnce(connected, (names) => names.length === 0);
  });
});

describe.concurrent('a hosted server among the servers of its project', () => {
  const open = sharedProcessSite();

  it('has a unique name', async () => {
    const site = await open();
    await site.register({ name: 'taken', ...site.process('toolbox') });
    const again = await site.site.ask('POST /mcp/servers', { name: 'taken', ...site.process('toolbox') });
    expect(again).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } });
    const server = { name: 'taken', transport: 'stdio', config: { command: 'true' } };
    const other = await site.site.ask('POST /projects/default/servers', server);
    expect(other).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } });
  });

  it('is visible only to clients of its project', async () => {
    const site = await open();
    const [own, other] = await Promise.all([
      site.site.createProject('own'),
      site.site.createProject('other'),
    ]);
    await site.host({ name: 'private', project_id: own.id, ...site.process('toolbox') });
    await using ofOwn = await connectHttp(own.url);
    await using ofOther = await connectHttp(other.url);
    await toolNamesOnce(ofOwn, (names) => names.includes('echo'));
    expect((await ofOther.client.listTools()).tools).toEqual([]);
    await expect(ofOther.client.callTool({ name: 'private__echo', arguments: {} })).rejects.toThrow();
  });

  it('has its calls over the API and the gateway recorded', async () => {
    const site = await open();
    const project = await site.site.createProject('recorded');
    const { id } = await site.host({ name: 'recorded', project_id: project.id, ...site.process('toolbox') });
    await using connected = await connectHttp(project.url);
    await toolNamesOnce(connected, (names) => names.includes('echo'));
    await connected.client.callTool({ name: 'echo', arguments: { text: 'one' } });
    await site.tool(id, 'echo', { text: 'two' });
    const calls = async () =>
      (await project.done<CallList>('GET /calls')).calls
        .filter(({ tool }) => tool === 'echo')
        .map(({ server, client }) => `${server} for ${client}`)
        .toSorted();
    const wanted = ['recorded for test-client', 'recorded for the API'];
    // Records are written in batches, with a delay.
    while ((await calls()).length < wanted.length);
    expect(await calls()).toEqual(wanted.map((each) => expect.stringContaining(each)));
  });

  it('accepts changes while it runs: a new environment restarts it', async () => {
    const site = await open();
    const { id } = await site.host(site.process('toolbox', { MOOD: 'good' }));
    expect(await site.tool(id, 'environment', { name: 'MOOD' })).toBe('good');
    const pid = await site.tool(id, 'pid');
    await site.site.done(`PATCH /mcp/servers/${id}`, { environment: { MOOD: 'better' } });
    await site.reaches(id, (server) => server.status === 'ready' && server.provider_workspace_id !== pid);
    expect(await site.tool(id, 'environment', { name: 'MOOD' })).toBe('better');
    expect(await site.view(id)).toMatchObject({ restart_count: 0, last_crash: null });
  });
});

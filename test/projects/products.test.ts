import { describe, expect, it } from 'vitest';
import type { Installation, ProductView, ServerView } from '../../src/api/views.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { databases, Site, type TestProject } from './site.ts';

type Counts = Omit<Installation, 'product'>;

describe.each(databases)('products (%s database)', (kind) => {
  let site: Site;
  const server = (name: string, more: object = {}) => ({
    name,
    transport: 'stdio',
    ...fixtureServer('toolbox', site.witness.env(name)),
    ...more,
  });
  const manifest = (version: string, ...servers: object[]) => ({
    name: 'acme',
    version,
    mcp: { servers },
  });
  const install = (project: TestProject, version: string, ...servers: object[]) =>
    project.ask<Installation>('POST /products', manifest(version, ...servers));
  const serversOf = async (project: TestProject) =>
    (await project.done<{ servers: ServerView[] }>('GET /servers')).servers;
  const outcome = ({ added, changed, removed, unchanged }: Counts): Counts => ({
    added,
    changed,
    removed,
    unchanged,
  });

  setUp(async (use) => {
    site = use(await Site.start(kind, { mcpServers: { filed: fixtureServer('toolbox') } }));
  });

  it('[P1] servers of projects are rows with the agreed columns', async () => {
    const columns = await site.query<{ name: string; type: string; nullable: string }>(
      `SELECT column_name AS name, data_type AS type, is_nullable AS nullable FROM information_schema.columns
       WHERE table_schema = 'kb' AND table_name = 'project_mcp_servers'`,
    );
    const shapes = Object.fromEntries(columns.map(({ name, type, nullable }) => [name, [type, nullable]]));
    expect(shapes).toMatchObject({
      id: ['uuid', 'NO'],
      project_id: ['uuid', 'NO'],
      product_id: ['uuid', 'YES'],
      name: ['text', 'NO'],
      description: ['text', expect.any(String)],
      transport: ['USER-DEFINED', 'NO'],
      config: ['jsonb', 'NO'],
      enabled: ['boolean', 'NO'],
      created_at: ['timestamp with time zone', 'NO'],
      updated_at: ['timestamp with time zone', 'NO'],
    });
    const project = await site.project();
    const insert = (name: string, transport: string) =>
      site.query(
        `INSERT INTO kb.project_mcp_servers (project_id, name, transport, config) VALUES ($1, $2, $3, $4)`,
        [project.id, name, transport, { url: 'http://127.0.0.1:9/mcp' }],
      );
    for (const transport of ['sse', 'http']) await insert(transport, transport);
    await expect(insert('odd', 'carrier-pigeon')).rejects.toThrow('transport');
    await expect(insert('http', 'http')).rejects.toThrow('unique');
  });

  it('[P1] a server that is added through the API is stored as such a row', async () => {
    const project = await site.project();
    const view = await project.add('box', { description: 'A box', labels: { region: 'eu' } });
    const rows = await site.query('SELECT * FROM kb.project_mcp_servers WHERE project_id = $1', [project.id]);
    expect(rows).toMatchObject([
      {
        id: view.id,
        product_id: null,
        name: 'box',
        description: 'A box',
        transport: 'stdio',
        config: fixtureServer('toolbox', site.witness.env(project.who('box'))),
        enabled: true,
      },
    ]);
    expect(view.created_at).toBe((rows[0]!.created_at as Date).toISOString());
  });

  it('[P2] the servers of a manifest become rows that reference their product and project', async () => {
    const project = await site.project();
    const remote = { name: 'far', transport: 'http', url: 'http://127.0.0.1:9/mcp', headers: { a: 'b' } };
    const described = server('near', { description: 'Close by' });
    const { status, headers, body } = await install(project, '1', described, remote);
    expect(status).toBe(201);
    expect(headers.location).toBe(`/api/v1/projects/${project.name}/products/acme`);
    expect(outcome(body)).toEqual({ added: ['near', 'far'], changed: [], removed: [], unchanged: [] });
    expect(body.product).toMatchObject({ name: 'acme', version: '1', servers: ['far', 'near'] });

    const rows = await site.query(
      'SELECT name, product_id, transport, config FROM kb.project_mcp_servers WHERE project_id = $1 ORDER BY name',
      [project.id],
    );
    const { command, args, env } = described as unknown as ReturnType<typeof fixtureServer>;
    expect(rows).toEqual([
      {
        name: 'far',
        product_id: body.product.id,
        transport: 'http',
        config: { url: remote.url, headers: remote.headers },
      },
      { name: 'near', product_id: body.product.id, transport: 'stdio', config: { command, args, env } },
    ]);
    const [product] = await site.query('SELECT * FROM kb.products WHERE project_id = $1', [project.id]);
    expect(product).toMatchObject({ id: body.product.id, manifest: manifest('1', described, remote) });
    expect(await serversOf(project)).toMatchObject([
      { name: 'far', source: 'product', product: 'acme', product_id: body.product.id },
      { name: 'near', source: 'product', product: 'acme', description: 'Close by' },
    ]);
  });

  it('[P2] clients get the tools of an installed product, and lose them with it', async () => {
    const project = await site.project();
    const client = await project.client();
    await client.toolsAfter(
      () => install(project, '1', server('brought')),
      (names) => names.includes('echo'),
    );
    const pid = await client.session.callText('pid');
    expect(await client.toolsAfter(() => project.done('DELETE /products/acme'))).toEqual([]);
    await site.witness.sees('brought', 'end', (sighting) => String(sighting.pid) === pid);
  });

  it('[P2] an upgrade adds, changes and removes servers, and leaves the rest running', async () => {
    const project = await site.project();
    await install(project, '1', server('kept'), server('moved'), server('dropped'));
    const client = await project.client();
    await client.toolsOnce((names) => names.includes('kept__pid') && names.includes('moved__pid'));
    const pids = await Promise.all(['kept__pid', 'moved__pid'].map((tool) => client.session.callText(tool)));

    const moved = server('moved', { args: [...fixtureServer('toolbox').args, '--verbose'] });
    const { status, body } = await install(project, '2', server('fresh'), moved, server('kept'));
    expect(status).toBe(200);
    expect(outcome(body)).toEqual({
      added: ['fresh'],
      changed: ['moved'],
      removed: ['dropped'],
      unchanged: ['kept'],
    });
    expect(body.product).toMatchObject({ version: '2' });
    await client.toolsOnce(
      (names) => names.includes('fresh__pid') && !names.some((name) => name.startsWith('dropped__')),
    );
    expect(await client.session.callText('kept__pid')).toBe(pids[0]);
    expect(await client.session.callText('moved__pid')).not.toBe(pids[1]);
    const { products } = await project.done<{ products: ProductView[] }>('GET /products');
    expect(products).toMatchObject([{ name: 'acme', version: '2' }]);
    expect(products[0]!.servers.toSorted()).toEqual(['fresh', 'kept', 'moved']);
  });

  it('[P2] an upgrade keeps what the user has disabled', async () => {
    const project = await site.project();
    await install(project, '1', server('same'), server('other'));
    for (const name of ['same', 'other']) await project.change(name, { enabled: false });
    const other = server('other', { description: 'Changed', enabled: true });
    expect(outcome((await install(project, '2', server('same'), other)).body)).toMatchObject({
      changed: ['other'],
      unchanged: ['same'],
    });
    expect((await serversOf(project)).map(({ enabled }) => enabled)).toEqual([false, false]);
    await project.change('other', { enabled: true });
    expect(await project.server('other')).toMatchObject({ enabled: true, description: 'Changed' });
  });

  it('[P2] installing the same manifest again changes nothing', async () => {
    const project = await site.project();
    await install(project, '1', server('a'), server('b', { labels: { tier: 'one' } }));
    const before = await serversOf(project);
    const { body } = await install(project, '1', server('a'), server('b', { labels: { tier: 'one' } }));
    expect(outcome(body)).toEqual({ added: [], changed: [], removed: [], unchanged: ['a', 'b'] });
    expect((await serversOf(project)).map(({ version }) => version)).toEqual(
      before.map(({ version }) => version),
    );
  });

  it('[P2] removing a product deletes its own rows and no others', async () => {
    const [project, elsewhere] = [await site.project(), await site.project()];
    await project.add('ours');
    await install(project, '1', server('theirs'));
    await project.done('POST /products', { ...manifest('1', server('more')), name: 'other' });
    await install(elsewhere, '1', server('theirs'));
    await project.done('DELETE /products/acme');
    expect((await serversOf(project)).map(({ name }) => name)).toEqual(['ours', 'more']);
    expect((await serversOf(elsewhere)).map(({ name }) => name)).toEqual(['theirs']);
    expect((await project.ask('DELETE /products/acme')).body.error).toMatchObject({ code: 'not_found' });
    const { body } = await install(project, '3', server('theirs'));
    expect(body).toMatchObject({ added: ['theirs'], product: { version: '3' } });
  });

  it('[P2] all name conflicts are reported before anything is written', async () => {
    const project = await site.project();
    await project.add('ours');
    await install(project, '1', server('theirs'));
    const other = { ...manifest('1', server('free'), server('ours'), server('theirs')), name: 'other' };
    const { status, body } = await project.ask('POST /products', other);
    expect(status).toBe(409);
    expect(body.error).toMatchObject({ code: 'conflict', details: { names: ['ours', 'theirs'] } });
    for (const name of ['"ours"', '"theirs"']) expect(body.error?.message).toContain(name);
    expect((await serversOf(project)).map(({ name }) => name)).toEqual(['ours', 'theirs']);
    const { products } = await project.done<{ products: ProductView[] }>('GET /products');
    expect(products.map(({ name }) => name)).toEqual(['acme']);

    // A conflicting upgrade changes nothing either.
    const upgrade = await install(project, '2', server('added'), server('ours'));
    expect(upgrade.body).toMatchObject({ error: { code: 'conflict', details: { names: ['ours'] } } });
    expect((await serversOf(project)).map(({ name }) => name)).toEqual(['ours', 'theirs']);
    expect(await project.done('GET /products')).toMatchObject({ products: [{ version: '1' }] });
  });

  it('[P2] a server in the configuration file conflicts too', async () => {
    const project = await site.defaultProject();
    const { status, body } = await install(project, '1', server('free'), server('filed'));
    expect(status).toBe(409);
    expect(body.error).toMatchObject({ code: 'conflict', details: { names: ['filed'] } });
    expect(await project.done('GET /products')).toEqual({ products: [] });
    expect((await serversOf(project)).map(({ name }) => name)).toEqual(['filed']);
  });

  it('[P2] servers of a product can be enabled and disabled, but only the product changes them', async () => {
    const project = await site.project();
    await install(project, '1', server('theirs'));
    for (const changes of [{ prefix: 'x' }, { name: 'mine' }, { enabled: false, description: 'x' }]) {
      const { status, body } = await project.ask('PATCH /servers/theirs', changes);
      expect(status).toBe(409);
      expect(body.error).toMatchObject({
        code: 'read_only',
        message: expect.stringContaining('belongs to the product "acme"'),
      });
    }
    expect((await project.ask('DELETE /servers/theirs')).body.error).toMatchObject({ code: 'read_only' });
    const file = { mcpServers: { theirs: fixtureServer('notes') } };
    expect((await project.ask('POST /import?replace=true', file)).body.error).toMatchObject({
      code: 'conflict',
    });
    expect(await project.change('theirs', { enabled: false })).toMatchObject({ enabled: false });
    expect(await project.change('theirs', { enabled: true })).toMatchObject({ enabled: true });
  });

  it('[P2] errors in a manifest are named, and nothing is written', async () => {
    const project = await site.project();
    const { status, body } = await project.ask('POST /products', {
      name: 'acme',
      version: '1',
      mcp: { servers: [server('good'), { name: 'bad', transport: 'stdio', url: 'http://127.0.0.1:9' }] },
    });
    expect(status).toBe(400);
    expect(body.error?.details.problems?.map(({ path }) => path)).toEqual(
      expect.arrayContaining([expect.stringContaining('mcp.servers[1]')]),
    );
    expect(await serversOf(project)).toEqual([]);
  });
});

import { beforeAll, describe, expect, it } from 'vitest';
import type { HostedView } from '../../src/api/hosted-views.ts';
import type { ImportResult, Installation, ServerView } from '../../src/api/views.ts';
import { freshDatabase } from '../helpers/database.ts';
import { HttpPeer } from '../helpers/http-peer.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { Site } from './site.ts';

const ref = (name: string) => `\${${name}}`;
const plain = 'plain-text-credential-1';

describe('a credential in plain text', () => {
  let site: Site;
  beforeAll(async () => {
    site = await Site.start('server');
    return () => site[Symbol.asyncDispose]();
  });

  /** All contents of the database, as text. */
  const stored = async () =>
    JSON.stringify(
      await Promise.all(
        ['project_mcp_servers', 'agent_workspaces', 'products', 'secrets'].map((table) =>
          site.query(`SELECT * FROM kb.${table}`),
        ),
      ),
    );

  it('becomes a secret when a server is added or changed, and reaches the server', async () => {
    const project = await site.project();
    const config = fixtureServer('toolbox', { BOX_TOKEN: plain, PLAIN: 'shown' });
    const added = await project.done<ServerView>('POST /servers', {
      name: 'box',
      transport: 'stdio',
      config,
    });
    expect(added).toMatchObject({
      config: { env: { BOX_TOKEN: ref('BOX_TOKEN'), PLAIN: 'shown' } },
      moved_secrets: ['BOX_TOKEN'],
    });
    expect(await (await project.session()).callText('environment', { name: 'BOX_TOKEN' })).toBe(plain);

    const other = fixtureServer('toolbox', { BOX_TOKEN: 'another value', PLAIN: 'shown' });
    const changed = await project.change('box', { config: other });
    expect(changed).toMatchObject({ config: { env: { BOX_TOKEN: ref('BOX_TOKEN_2') } } });
    expect(await (await project.session()).callText('environment', { name: 'BOX_TOKEN' })).toBe(
      'another value',
    );
    expect(await project.change('box', { config })).toMatchObject({
      config: { env: { BOX_TOKEN: ref('BOX_TOKEN') } },
    });
    expect(await project.server('box')).not.toHaveProperty('moved_secrets');
    expect(await stored()).not.toContain(plain);
  });

  it('becomes a secret when servers are imported', async () => {
    const project = await site.project();
    const github = {
      url: `https://h.example/mcp?key=${plain}`,
      headers: { Authorization: `Bearer ${plain}` },
    };
    const { notes } = await project.done<ImportResult>('POST /import', { mcpServers: { github } });
    expect(notes).toEqual([
      'github: a credential was moved into the secret GITHUB_AUTHORIZATION',
      'github: a credential was moved into the secret GITHUB_KEY',
    ]);
    const { config } = await project.server('github');
    expect(config).toEqual({
      url: `https://h.example/mcp?key=${ref('GITHUB_KEY')}`,
      headers: { Authorization: `Bearer ${ref('GITHUB_AUTHORIZATION')}` },
    });
    expect(await stored()).not.toContain(plain);
  });

  it('becomes a secret when a product is installed, and stays unchanged when it is installed again', async () => {
    const project = await site.project();
    const server = { name: 'db', transport: 'stdio', command: 'npx', args: ['db', `--api-key=${plain}`] };
    const manifest = { name: 'kit', version: '1', mcp: { servers: [server] } };
    const first = await project.done<Installation>('POST /products', manifest);
    expect(first).toMatchObject({ added: ['db'], moved_secrets: ['DB_API_KEY'] });
    expect(await project.done<Installation>('POST /products', manifest)).toMatchObject({ unchanged: ['db'] });
    expect(await stored()).not.toContain(plain);
  });

  it('becomes a secret of a hosted server, even in its arguments, and reaches it', async () => {
    const { command, args } = fixtureServer('toolbox');
    const hosted = await site.done<HostedView>('POST /mcp/servers', {
      ...{ name: 'own', provider: 'process', command, args: [...args, `--api-key=${plain}`, ref('HOME')] },
      environment: { TOKEN: plain },
    });
    expect(hosted.args.slice(-2)).toEqual([`--api-key=${ref('OWN_API_KEY')}`, ref('HOME')]);
    expect(hosted.moved_secrets).toEqual(['OWN_API_KEY', 'OWN_TOKEN']);
    const { body } = await site.ask<{ result: { content: { text: string }[] } }>(
      'POST /mcp/servers/own/call',
      {
        method: 'tools/call',
        params: { name: 'environment', arguments: { name: 'TOKEN' } },
      },
    );
    expect(body.result.content[0]!.text).toBe(plain);
    expect(await stored()).not.toContain(plain);
    await site.ask('DELETE /mcp/servers/own');
  });
});

it('credentials in the configuration file are never shown', async () => {
  await using site = await Site.start('server', {
    mcpServers: {
      local: { command: 'none', args: ['--token', plain], env: { A: plain } },
      remote: { url: `http://user:${plain}@127.0.0.1:1/?token=${plain}`, headers: { X: plain } },
    },
  });
  const { text } = await site.ask('GET /projects/default/servers');
  expect(text).not.toContain(plain);
  expect(text).toContain('user:***@127.0.0.1:1/?token=***');
});

it('credentials that the file’s servers take from any environment variable are never shown', async () => {
  const env = {
    ...{ GH: 'harmless-name-1', FIRST: 'harmless-first-2' },
    ...{ SECOND: 'second-part-3', PLACE: 'no-credential-4' },
  };
  const script = 'echo "given: $TOKEN, $A in $PLACE" >&2; exit 3';
  await using peer = await HttpPeer.start({
    mcp({ headers, response }) {
      response.writeHead(401, { 'content-type': 'text/plain' }).end(`no: ${headers.authorization}`);
      return true;
    },
  });
  const local = {
    ...{ command: 'sh', args: ['-c', script] },
    env: { TOKEN: `${ref('FIRST')}:${ref('SECOND')}`, A: ref('SECOND'), PLACE: ref('PLACE') },
  };
  const remote = { url: `${peer.origin}/mcp`, headers: { Authorization: `Bearer ${ref('GH')}` } };
  await using site = await Site.start('server', { mcpServers: { local, remote } }, { env });
  const project = await site.defaultProject();
  const shown: string[] = [];
  for (const name of ['local', 'remote']) {
    for (const what of [`POST /servers/${name}/test`, `GET /servers/${name}`, `GET /servers/${name}/logs`]) {
      shown.push((await project.ask(what)).text);
    }
  }
  expect(shown.join('\n')).toContain('given: ***, *** in no-credential-4');
  expect(shown.join('\n')).toContain('no: Bearer ***');
  const all = `${shown.join('\n')}${JSON.stringify(site.switchboard.events)}`;
  for (const value of [env.GH, env.FIRST, env.SECOND]) expect(all).not.toContain(value);
});

it('existing plain-text credentials are migrated once at start, by the first of two processes', async () => {
  await using database = await freshDatabase();
  await using site = await Site.start('server', { mcpServers: {} }, { url: database.url });
  const project = await site.createProject('old');
  await project.add('box', { env: { PLAIN: 'x' } });
  await project.done('POST /products', {
    ...{ name: 'kit', version: '1' },
    mcp: { servers: [{ name: 'db', transport: 'stdio', command: 'none', env: { A: 'b' } }] },
  });
  await site.restart(async () => {
    await site.query(
      `UPDATE kb.project_mcp_servers SET config = jsonb_set(config, '{env,BOX_TOKEN}', to_jsonb($1::text)) WHERE name = 'box'`,
      [plain],
    );
    await site.query(
      `UPDATE kb.products SET manifest = jsonb_set(manifest, '{mcp,servers,0,env,DB_KEY}', to_jsonb($1::text))`,
      [plain],
    );
  });
  await using other = await Site.start('server', { mcpServers: {} }, { url: database.url });
  expect(await site.warning(/moved to secrets/)).toBe(
    'Plain-text credentials in the database were moved to secrets of project "old": those of box, db.',
  );
  expect(JSON.stringify(other.switchboard.events)).not.toContain('moved to secrets');
  const rows = await site.query('SELECT s.config, p.manifest FROM kb.project_mcp_servers s, kb.products p');
  expect(JSON.stringify(rows)).not.toContain(plain);
  expect(await (await project.session()).callText('environment', { name: 'BOX_TOKEN' })).toBe(plain);
  const names = await site.query<{ name: string }>('SELECT name FROM kb.secrets ORDER BY name');
  expect(names.map(({ name }) => name)).toEqual(['BOX_TOKEN', 'DB_KEY']);
});

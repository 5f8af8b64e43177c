import { describe, expect, it } from 'vitest';
import { setUp } from '../helpers/set-up.ts';
import { Site, type TestProject } from '../projects/site.ts';
import { RawModern } from './raw-modern.ts';

const UPDATED = 'notifications/resources/updated';

interface Scoped {
  client: RawModern;
  meta: Record<string, unknown>;
}

/** The ways to name the project of a request. */
const ways: Record<string, (site: Site, project: TestProject) => Scoped> = {
  address: (site, { name }) => ({ client: new RawModern(`${site.baseUrl}/mcp/${name}`), meta: {} }),
  header: (site, { id }) => ({
    client: new RawModern(`${site.baseUrl}/mcp`, { headers: { 'x-project-id': id } }),
    meta: {},
  }),
  _meta: (site, { name }) => ({
    client: new RawModern(`${site.baseUrl}/mcp`),
    meta: { projectId: name },
  }),
};

describe('the project of a modern request', () => {
  let site: Site;
  let alpha: TestProject;
  let beta: TestProject;

  setUp(async (use) => {
    site = use(await Site.start('server'));
    alpha = await site.createProject('alpha');
    beta = await site.createProject('beta');
    for (const project of [alpha, beta])
      await project.add('notes', { fixture: 'notes', env: { NOTES_OF: project.name } });
    await new RawModern(`${site.baseUrl}/mcp`).request('tools/list');
  });

  describe.each(Object.entries(ways))('in its %s', (_way, scoped) => {
    it('limits lists, reads and prompts to that project', async () => {
      for (const project of [alpha, beta]) {
        const { client, meta } = scoped(site, project);
        const { result } = await client.request('resources/list', {}, { meta });
        const uris = (result as { resources: { uri: string }[] }).resources.map(({ uri }) => uri);
        expect(uris).toContain(`resource://notes/note://only/${project.name}`);
        expect(uris).toHaveLength(3);
        const uri = 'resource://notes/note://todo';
        const read = await client.request('resources/read', { uri }, { meta });
        expect(JSON.stringify(read.result)).toContain(`of ${project.name}`);
        const prompt = await client.request('prompts/get', { name: 'summarize' }, { meta });
        expect(JSON.stringify(prompt.result)).toContain(`Notes of ${project.name}`);
      }
    });

    it('hides the contents of other projects', async () => {
      const { client, meta } = scoped(site, alpha);
      const uri = 'resource://notes/note://only/beta';
      const { error } = await client.request('resources/read', { uri }, { meta });
      expect(error?.code).toBe(-32602);
    });

    it('limits the notifications of a subscription', async () => {
      const uri = 'resource://notes/note://todo';
      const hear = async (project: TestProject) => {
        const { client, meta } = scoped(site, project);
        const params = { notifications: { resourceSubscriptions: [uri] } };
        const stream = await client.stream('subscriptions/listen', params, { meta });
        await stream.message(({ method }) => method === 'notifications/subscriptions/acknowledged');
        return stream;
      };
      const [ofAlpha, ofBeta] = [await hear(alpha), await hear(beta)];
      const touch = async (project: TestProject) => {
        const { client, meta } = scoped(site, project);
        const params = { name: 'touch', arguments: { uri: 'note://todo' } };
        await client.request('tools/call', params, { meta });
      };
      await touch(alpha);
      await ofAlpha.message(({ method }) => method === UPDATED);
      await touch(beta);
      await ofBeta.message(({ method }) => method === UPDATED);
      for (const stream of [ofAlpha, ofBeta]) {
        expect(stream.messages.filter(({ method }) => method === UPDATED)).toHaveLength(1);
        await stream.cut();
      }
    });
  });

  it('gets an error if it does not exist', async () => {
    const client = new RawModern(`${site.baseUrl}/mcp/gamma`);
    const { status, json } = await client.send('tools/list', {}, { id: 'mine' });
    expect(status).toBe(404);
    expect(json).toMatchObject({ id: 'mine', error: { message: expect.stringContaining('gamma') } });
  });

  it('is rejected if two places name different ones', async () => {
    const client = new RawModern(`${site.baseUrl}/mcp/alpha`);
    const { status, json } = await client.send(
      'tools/list',
      {},
      { id: 'mine', headers: { 'x-project-id': beta.id } },
    );
    expect(status).toBe(400);
    expect(json).toMatchObject({ id: 'mine', error: { code: -32600 } });
  });
});

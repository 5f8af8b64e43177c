import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import type { StatusView } from '../../src/api/views.ts';
import { exchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { AccessScene, type AuditEntry, bearer } from './scene.ts';

const lookalike = () => `sbk_${randomBytes(42).toString('base64url').slice(0, 55)}`;

describe('the audit log', () => {
  let scene: AccessScene;
  setUp(async (use) => {
    scene = use(await AccessScene.start());
  });

  const entries = async (query: string) =>
    (await scene.done<{ entries: AuditEntry[] }>(`GET /audit?limit=500&${query}`)).entries;
  const status = async (key?: string) => scene.done<StatusView>('GET /status', undefined, key);
  const newest = async (action: string) => (await entries(`action=${action}`))[0]!;

  it('has each action of a sender who tries many others at the same moment', async () => {
    const viewer = await scene.newKey({ role: 'viewer' });
    const session = await scene.session(viewer.key);
    const noise = Promise.all(
      Array.from({ length: 300 }, (_, index) =>
        session.request('resources/read', { uri: `file:///noise/${index}` }),
      ),
    );
    const [key, rule] = await Promise.all([
      scene.ask('POST /keys', { name: 'evil', project: 'default', role: 'admin' }, viewer.key),
      scene.ask('POST /rules', { effect: 'allow', project: 'default' }, viewer.key),
    ]);
    await noise;
    expect([key.status, rule.status]).toEqual([403, 403]);
    const by = `principal=${viewer.id}`;
    await scene.audited(`${by}&action=manage`, ({ subject }) => subject === 'key evil');
    const reads = async () => {
      const found = await entries(`${by}&action=call`);
      return found.reduce((sum, { count }) => sum + (count as number), 0);
    };
    await expect.poll(reads).toBe(300);
    expect((await entries(`${by}&action=call`)).length).toBeLessThan(300);
    expect((await status()).audit).toEqual({ queued: 0, merged: expect.toSatisfy((count) => count > 0) });
    expect((await status(viewer.key)).audit).toBe(null);
  });

  it('does not grow with the number of invented keys', async () => {
    const refused = () => entries('action=authenticate');
    const before = (await refused()).length;
    const { baseUrl } = scene.switchboard;
    for (let index = 0; index < 100; index++) {
      await exchange(`${baseUrl}/api/v1/whoami`, { method: 'GET', headers: bearer(lookalike()) });
    }
    const count = async () => {
      const added = (await refused()).slice(0, (await refused()).length - before);
      return added.reduce((sum, entry) => sum + (entry.count as number), 0);
    };
    await expect.poll(count).toBe(100);
    expect((await refused()).length - before).toBeLessThan(50);
    expect((await refused())[0]).toMatchObject({ subject: 'credential: unknown', actor: { id: '' } });
  });

  it('names the key whose secret is wrong', async () => {
    const { key, id } = await scene.newKey();
    const wrong = key.slice(0, 16) + lookalike().slice(16);
    await exchange(`${scene.switchboard.baseUrl}/api/v1/whoami`, { method: 'GET', headers: bearer(wrong) });
    const found = await scene.audited(`principal=${id}`, ({ action }) => action === 'authenticate');
    expect(found.subject).toBe(`key ${key.slice(4, 16)}: unknown`);
  });

  it('and errors never show a whole key, wherever somebody sent it, nor credentials in URIs', async () => {
    const [viewer, owner, victim] = [
      await scene.newKey({ role: 'viewer' }),
      await scene.newKey({ role: 'owner' }),
      await scene.newKey(),
    ];
    const answers = [
      await scene.ask(
        'PUT /grants',
        { principal: victim.key, project: 'default', role: 'admin' },
        viewer.key,
      ),
      await scene.ask(
        'PUT /grants',
        { principal: victim.key, project: 'default', role: 'viewer' },
        owner.key,
      ),
      await scene.ask('POST /keys', { name: victim.key, project: 'default', role: 'viewer' }, owner.key),
      await scene.ask('POST /keys', { name: victim.key, project: 'default', role: 'admin' }, viewer.key),
      await scene.ask('POST /rules', { effect: 'deny', project: 'default', name: victim.key }, owner.key),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([403, 404, 400, 400, 201]);
    const session = await scene.session(viewer.key);
    await session.request('resources/read', {
      uri: `file:///public/readme.txt?token=HIDDEN&k=${victim.key}`,
    });
    await session.call(victim.key);
    await scene.audited(`principal=${viewer.id}&action=call`, ({ subject }) =>
      subject!.includes('token=***'),
    );
    // The owner's own rule shows what it was given.
    const shown = JSON.stringify([answers.slice(0, 4), await entries('')]);
    expect(shown).toContain(`sbk_${victim.key.slice(4, 16)}…`);
    expect(shown).not.toContain(victim.key.slice(16, 40));
    expect(shown).not.toContain('HIDDEN');
  });

  it('shows what a server starts, however much surrounds it, and no value of variables and headers', async () => {
    const operator = await scene.newKey({ role: 'operator' });
    const add = (name: string, transport: string, config: object) =>
      scene.done('POST /projects/default/servers', { name, transport, enabled: false, config }, operator.key);
    await add('evil', 'stdio', { command: 'curl', args: ['http://evil'], env: { PAD: 'x'.repeat(17_000) } });
    const config = { command: 'curl', args: ['http://evil'], env: { PAD: '***' } };
    expect(await newest('server.create')).toMatchObject({ subject: 'evil', after: { name: 'evil', config } });
    await add('web', 'http', {
      url: 'http://user:HIDDEN@127.0.0.1:9/x?api_key=HIDDEN&q=HIDDEN#HIDDEN',
      headers: { 'x-foo': 'HIDDEN' },
    });
    expect(await newest('server.create')).toMatchObject({
      subject: 'web',
      after: {
        config: {
          url: expect.stringMatching(
            /^http:\/\/\*{3}@127\.0\.0\.1:9\/x\?api_key=\$\{WEB_API_KEY\}&q=\*{3}#\*{3}$/,
          ),
          headers: { 'x-foo': '***' },
        },
      },
    });
  });

  it('has what goes with a group, a key and a project', async () => {
    const project = 'short-lived';
    await scene.addProject(project);
    const [key, own] = [await scene.newKey(), await scene.newKey({ project })];
    await scene.done('POST /groups', { name: 'team' });
    for (const { id } of [key, own]) await scene.done(`PUT /groups/team/members/${id}`);
    await scene.done('PUT /grants', { group: 'team', project: 'default', role: 'operator' });
    const ofGroup = await scene.addRule({ subject: { group: 'team' }, kind: 'tool', name: 'delete_*' });
    const ofKey = await scene.addRule({ subject: { principal: key.id }, name: 'touch' });
    const ofProject = await scene.addRule({ project, name: 'wait' });
    const limit = await scene.done<{ id: string }>('POST /limits', { principal: key.id, per_minute: 9 });

    await scene.done(`DELETE /keys/${key.id}`);
    expect((await newest('key.revoke')).before).toMatchObject({
      name: key.name,
      groups: [{ name: 'team' }],
      roles: [{ role: 'caller', holder: { id: key.id } }],
      rules: [{ id: ofKey, text: `deny principal ${key.id} anything */touch` }],
      limits: [{ id: limit.id, perMinute: 9 }],
    });
    await scene.done('DELETE /groups/team');
    expect((await newest('group.remove')).before).toMatchObject({
      name: 'team',
      members: [{ id: own.id, name: own.name }],
      roles: [{ role: 'operator', holder: { name: 'team' } }],
      rules: [{ id: ofGroup }],
    });
    await scene.done(`DELETE /projects/${project}`);
    expect((await newest('project.remove')).before).toMatchObject({
      name: project,
      keys: [{ id: own.id, name: own.name }],
      servers: [{ name: 'github' }],
      roles: [{ role: 'caller', holder: { id: own.id } }],
      rules: [{ id: ofProject, text: 'deny everyone anything */wait' }],
    });
  });

  it('is found by the ids of those who are no keys, whose names nobody can take', async () => {
    const owner = await scene.newKey({ role: 'owner' });
    const add = async (name: string) =>
      (await scene.ask('POST /keys', { name, project: 'default', role: 'viewer' }, owner.key)).status;
    for (const name of [
      ...[
        'local',
        'local user',
        'system',
        'Switchboard',
        'unknown',
        ' ci',
        'ci ',
        '  ',
        'ci\u200b',
        '\u2060',
      ],
      ...['a\u00a0b', 'a\u00adb', '\u3164', '\u2800', '\ufe0f', '\u0301', 'a\u{e0041}', 'sbk_x', 'a-sbk_x'],
    ]) {
      expect([name, await add(name)]).toEqual([name, 400]);
    }
    expect(await scene.ask('POST /groups', { name: 'local' })).toMatchObject({ status: 400 });
    expect(await add('Grüße 世界 a_b-c')).toBe(201);
    expect(await add('caf\u0065\u0301')).toBe(201);
    expect(await add('caf\u00e9')).toBe(409);
    expect((await entries('principal=local')).map(({ actor }) => actor.kind)).toContain('local');
  });

  it('finds the local user beside an older key of that name', async () => {
    const { id } = await scene.newKey();
    const database = new pg.Client({ connectionString: scene.switchboard.databaseUrl! });
    await database.connect();
    await database.query("UPDATE kb.principals SET name = 'local' WHERE id = $1", [id]);
    await database.end();
    expect((await entries('principal=local')).map(({ actor }) => actor.kind)).toContain('local');
  });
});

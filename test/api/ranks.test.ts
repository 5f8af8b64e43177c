import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { GrantView, KeyView, WhoamiView } from '../../src/api/access-views.ts';
import { AccessScene, bearer } from '../access/scene.ts';
import { administer } from '../helpers/database.ts';
import { exchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';

type Key = Awaited<ReturnType<AccessScene['newKey']>>;

let scene: AccessScene;
let owner: Key;

setUp(async (use) => {
  scene = use(await AccessScene.start({ servers: {} }));
  await scene.done('POST /projects', { name: 'web' });
  owner = await scene.newKey({ role: 'owner' });
});

const name = () => `made-${randomUUID()}.`;
const asOwner = async (what: string, body?: object) => {
  const { status, json, text } = await scene.ask(what, body, owner.key);
  return { status, text, code: (json?.error as { code?: string } | undefined)?.code };
};
const forbidden = { status: 403, code: 'forbidden' };
const missing = { status: 404, code: 'not_found' };
const hidden = { status: 404, code: 'unknown_project' };
const grant = (body: object) => scene.done<GrantView>('PUT /grants', body);

describe('an owner', () => {
  it('gives roles up to the own one, in the own project', async () => {
    for (const role of ['viewer', 'caller', 'operator', 'owner'])
      expect(await asOwner('POST /keys', { name: name(), project: 'default', role })).toMatchObject({
        status: 201,
      });
    for (const body of [
      { name: name(), project: 'default', role: 'admin' },
      { name: name(), role: 'viewer' },
    ])
      expect(await asOwner('POST /keys', body)).toMatchObject(forbidden);
    expect(await asOwner('POST /keys', { name: name(), project: 'web', role: 'viewer' })).toMatchObject(
      hidden,
    );
    const { id } = await scene.newKey({ role: 'viewer' });
    const put = (body: object) => asOwner('PUT /grants', { principal: id, ...body });
    expect(await put({ project: 'default', role: 'owner' })).toMatchObject({ status: 200 });
    expect(await put({ project: 'default', role: 'admin' })).toMatchObject(forbidden);
    expect(await put({ role: 'viewer' })).toMatchObject(forbidden);
    expect(await put({ project: 'web', role: 'viewer' })).toMatchObject(hidden);
    await scene.audited(`principal=${owner.id}&outcome=denied&action=administer`, () => true);
  });

  it('cannot raise itself', async () => {
    const raise = (body: object) => asOwner('PUT /grants', { principal: owner.id, ...body });
    expect(await raise({ project: 'default', role: 'admin' })).toMatchObject(forbidden);
    expect(await raise({ role: 'owner' })).toMatchObject(forbidden);
    expect(await asOwner('POST /groups', { name: name() })).toMatchObject(forbidden);
  });

  it.each<[string, object]>([
    ['here', { project: 'default', role: 'admin' }],
    ['in another project', { project: 'web', role: 'viewer' }],
    ['in all projects', { role: 'viewer' }],
  ])('cannot take over a key that may do more %s', async (_where, more) => {
    const { id } = await scene.newKey({ role: 'viewer' });
    const reach = async () => [
      (await asOwner(`POST /keys/${id}/rotate`, {})).status,
      (await asOwner(`PATCH /keys/${id}`, { name: name() })).status,
      (await asOwner(`DELETE /keys/${id}`)).status,
    ];
    await grant({ principal: id, ...more });
    expect(await reach()).toEqual([403, 403, 403]);
    expect((await asOwner(`GET /keys/${id}`)).status).toBe(200);
  });

  it('cannot take over a key that may do more through a group', async () => {
    const { id } = await scene.newKey({ role: 'viewer' });
    const group = await scene.done<{ id: string }>('POST /groups', { name: name() });
    await scene.done(`PUT /groups/${group.id}/members/${id}`);
    expect(await asOwner(`POST /keys/${id}/rotate`, {})).toMatchObject({ status: 200 });
    await grant({ group: group.id, project: 'web', role: 'caller' });
    expect(await asOwner(`POST /keys/${id}/rotate`, {})).toMatchObject(forbidden);
  });

  it('cannot lower or take what is above', async () => {
    const { id } = await scene.newKey({ role: 'viewer' });
    const { id: above } = await grant({ principal: id, project: 'default', role: 'admin' });
    const lower = { principal: id, project: 'default', role: 'viewer' };
    expect(await asOwner('PUT /grants', lower)).toMatchObject(forbidden);
    expect(await asOwner(`DELETE /grants/${above}`)).toMatchObject(forbidden);
  });

  it('may name keys of elsewhere that have a role in the project', async () => {
    const { id } = await scene.newKey({ project: undefined });
    const about = { effect: 'deny', project: 'default', subject: { principal: id } };
    expect(await asOwner('POST /rules', about)).toMatchObject({ status: 201 });
    expect((await asOwner(`GET /can?project=default&principal=${id}`)).text).toContain('"role":"caller"');
    expect(await asOwner(`GET /keys/${id}`)).toMatchObject(missing);
  });

  it('does not know what belongs elsewhere', async () => {
    const key = await scene.newKey({ project: 'web' });
    const { id: rule } = await scene.done<{ id: string }>('POST /rules', { effect: 'deny', project: 'web' });
    const { id: global } = await scene.done<{ id: string }>('POST /rules', { effect: 'deny', name: 'x' });
    const { id: limit } = await scene.done<{ id: string }>('POST /limits', { project: 'web', concurrent: 9 });
    const { grants } = await scene.done<{ grants: GrantView[] }>('GET /grants?project=web');
    for (const what of [
      `GET /keys/${key.id}`,
      `GET /keys/${key.name}`,
      `GET /keys/${encodeURIComponent(`web/${key.name}`)}`,
      `DELETE /keys/${key.id}`,
      `DELETE /rules/${rule}`,
      `DELETE /rules/${global}`,
      `DELETE /limits/${limit}`,
      `DELETE /grants/${grants[0]!.id}`,
    ]) {
      const answer = await asOwner(what);
      expect(answer, what).toMatchObject(missing);
      const step = what.split('/').at(-1)!;
      const never = await asOwner(what.replace(step, 'never'));
      expect(answer.text).toBe(never.text.replaceAll('never', decodeURIComponent(step)));
    }
    for (const list of ['keys', 'grants', 'rules', 'limits']) {
      expect((await asOwner(`GET /${list}`)).text).not.toContain('web');
      expect(await asOwner(`GET /${list}?project=web`)).toMatchObject(hidden);
    }
    const about = { effect: 'deny', project: 'default', subject: { principal: key.id } };
    expect(await asOwner('POST /rules', about)).toMatchObject(missing);
    expect(await asOwner(`GET /can?project=default&principal=${key.id}`)).toMatchObject(missing);
    expect(await asOwner('GET /audit?project=web')).toMatchObject(hidden);
    expect(await asOwner('GET /audit')).toMatchObject(forbidden);
    expect((await asOwner('GET /audit?project=default&limit=500')).text).not.toContain(key.name);
    const lines = await exchange(`${scene.switchboard.baseUrl}/api/v1/audit`, {
      method: 'GET',
      headers: { ...bearer(owner.key), accept: 'application/jsonl' },
    });
    expect(lines.status).toBe(403);
  });
});

describe('whoever sends a request', () => {
  let key: Key;
  beforeAll(async () => {
    key = await scene.newKey({ role: 'caller', expires_at: '2999-01-01T00:00:00Z' });
  });

  it('is told who it is', async () => {
    const group = await scene.done<{ id: string }>('POST /groups', { name: 'testers' });
    await scene.done(`PUT /groups/${group.id}/members/${key.id}`);
    await grant({ group: group.id, project: 'web', role: 'viewer' });
    const who = await scene.done<WhoamiView>('GET /whoami', undefined, key.key);
    expect(who).toMatchObject({
      ...{ kind: 'key', id: key.id, name: key.name, address: '127.0.0.1', authentication: true },
      expires_at: '2999-01-01T00:00:00.000Z',
      groups: [{ name: 'testers' }],
    });
    expect(who.roles.map(({ project, role }) => [project?.name, role]).toSorted()).toEqual([
      ['default', 'caller'],
      ['web', 'viewer'],
    ]);
    await scene.done(`DELETE /groups/${group.id}`);
    expect((await scene.done<WhoamiView>('GET /whoami', undefined, key.key)).roles.length).toBe(1);
  });

  it('may ask about itself, and not about others', async () => {
    const can = (query: string) => scene.ask(`GET /can?project=default&${query}`, undefined, key.key);
    expect((await can('action=call')).text).toContain('"allowed":true');
    expect((await can(`principal=${key.name}`)).text).toContain('"allowed":true');
    expect((await can('action=operate')).text).toContain('This needs the role operator');
    expect((await can(`principal=${owner.id}`)).status).toBe(403);
    expect((await can('principal=never')).status).toBe(403);
  });

  it('hears that it has expired from "can"', async () => {
    const { id } = await scene.newKey({ expires_at: new Date(Date.now() + 3_000).toISOString() });
    for (;;) {
      const answer = await scene.done<{ reason: string }>(`GET /can?project=default&principal=${id}`);
      if (answer.reason.includes('expired')) return;
    }
  });

  it('is found by the public part of its key', async () => {
    const { keys } = await scene.done<{ keys: KeyView[] }>('GET /keys?project=default');
    expect(keys.find(({ id }) => id === key.id)?.secrets.map(({ id }) => id)).toEqual([key.key.slice(4, 16)]);
  });
});

it('over a limit, the API says when to try again', async () => {
  const { id, key } = await scene.newKey({ role: 'viewer' });
  await scene.done('POST /limits', { principal: id, per_minute: 2 });
  const ask = () => scene.ask('GET /projects/default/servers', undefined, key);
  expect([(await ask()).status, (await ask()).status]).toEqual([200, 200]);
  const { status, headers, text } = await ask();
  expect([status, Number(headers['retry-after'])]).toEqual([429, expect.any(Number)]);
  expect(text).toContain('too_many_requests');
  // A project that does not exist for it is counted no other way.
  expect((await scene.ask('GET /projects/web/servers', undefined, key)).status).toBe(429);
});

it('there is a limit to the number of rules and limits', async () => {
  const database = new URL(scene.switchboard.databaseUrl!).pathname.slice(1);
  const { id } = await scene.newKey({ role: 'viewer' });
  await administer(
    `INSERT INTO kb.rules (id, effect, subject_kind, subject_principal)
       SELECT 'r' || n, 'deny', 'principal', '${id}' FROM generate_series(1, 10000) AS n;
     INSERT INTO kb.limits (id, principal_id, per_minute)
       SELECT 'l' || n, '${id}', 9 FROM generate_series(1, 10000) AS n`,
    database,
  );
  for (const [what, body] of [
    ['rules', { effect: 'deny', subject: { principal: id } }],
    ['limits', { principal: id, per_minute: 1 }],
  ] as const) {
    const answer = await scene.ask(`POST /${what}`, body);
    expect([answer.status, answer.text]).toEqual([
      409,
      expect.stringContaining(`${what}, which is the limit`),
    ]);
  }
  // They end with the key.
  await scene.done(`DELETE /keys/${id}`);
  await scene.done(
    `DELETE /rules/${(await scene.done<{ id: string }>('POST /rules', { effect: 'deny' })).id}`,
  );
});

it('there is a limit to the rules that can apply in one project, and to the readings of one', async () => {
  const database = new URL(scene.switchboard.databaseUrl!).pathname.slice(1);
  await scene.done('POST /projects', { name: 'full' });
  await administer(
    `INSERT INTO kb.rules (id, effect, subject_kind, project_id, name)
       SELECT 'r' || n, 'deny', 'everyone', id, 'x' || n FROM kb.projects, generate_series(1, 499 - (SELECT count(*)::int FROM kb.rules WHERE project_id IS NULL)) AS n
       WHERE name = 'full'`,
    database,
  );
  const deny = (body: object) => scene.ask('POST /rules', { effect: 'deny', name: 'x', ...body });
  const { id } = await scene.done<{ id: string }>('POST /rules', { effect: 'deny', name: 'x' });
  for (const body of [{}, { project: 'full' }]) {
    const { status, text } = await deny(body);
    expect([status, text]).toEqual([409, expect.stringContaining('500 rules that can apply in project')]);
  }
  expect((await deny({ project: 'web' })).status).toBe(201);
  await scene.done(`DELETE /rules/${id}`);
  await scene.done('DELETE /projects/full');
  const name = 'file:///a%252541/../b\\c?d+e#*';
  expect((await deny({ name, kind: 'tool', project: 'web' })).status).toBe(201);
  const { status, text } = await deny({ name, project: 'web' });
  expect([status, text]).toEqual([400, expect.stringContaining('12 ways')]);
});

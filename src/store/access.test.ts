import { describe, expect, it } from 'vitest';
import { connectTo } from '../../test/helpers/database.ts';
import { storeForTests } from '../../test/helpers/store.ts';
import { isKey, keyIdOf } from '../identity/keys.ts';
import type { Rule, Subject } from '../identity/rules.ts';
import type { AccessTable } from './access.ts';

const { database, store, newProject } = await storeForTests();
const { access } = store;

let count = 0;
function newKey(projectId: string | null, more: Partial<Parameters<AccessTable['createKey']>[0]> = {}) {
  return access.createKey({ name: `key ${++count}`, projectId, role: 'caller', expiresAt: null, ...more });
}

const unknownId = '00000000-0000-4000-8000-000000000000';

describe('keys', () => {
  it('are listed with their role and their secrets, and without a hash', async () => {
    const projectId = await newProject();
    const expiresAt = new Date('2100-01-01T00:00:00.000Z');
    const { key, text } = await newKey(projectId, { name: 'ci', role: 'operator', expiresAt });
    expect(key).toEqual({
      ...{ id: expect.any(String), kind: 'key', name: 'ci', project_id: projectId, role: 'operator' },
      ...{ expires_at: expiresAt, created_at: expect.any(Date) },
      secrets: [
        {
          ...{ id: keyIdOf(text), principal_id: key.id, created_at: expect.any(Date) },
          ...{ expires_at: null, last_used_at: null },
        },
      ],
    });
    expect(await access.listKeys({ projectId })).toEqual([key]);
    expect(await access.getKey(key.id)).toEqual(key);
    expect(await access.listKeys()).toContainEqual(key);
    expect(await access.listKeys({ projectId: null })).not.toContainEqual(key);
    expect(await access.listKeys({ projectId: 'none' })).toEqual([]);
    expect(await access.getKey(unknownId)).toBe(undefined);
    expect(await access.getKey('none')).toBe(undefined);
  });

  it('may hold their role in all projects', async () => {
    const { key } = await newKey(null, { role: 'admin' });
    expect(key).toMatchObject({ project_id: null, role: 'admin' });
    expect(await access.listKeys({ projectId: null })).toContainEqual(key);
    const { grants } = await access.state();
    expect(grants).toContainEqual({
      ...{ holder: { kind: 'principal', id: key.id }, project: undefined, role: 'admin' },
    });
  });

  it('have unique names in their project', async () => {
    const [one, other] = [await newProject(), await newProject()];
    await newKey(one, { name: 'twin' });
    await newKey(other, { name: 'twin' });
    await newKey(null, { name: 'twin' });
    const taken = { code: 'conflict', message: expect.stringContaining('a key "twin" already') };
    await expect(newKey(one, { name: 'twin' })).rejects.toMatchObject(taken);
    await expect(newKey(null, { name: 'twin' })).rejects.toMatchObject(taken);
    const { key } = await newKey(one);
    await expect(access.changeKey(key.id, { name: 'twin' })).rejects.toMatchObject(taken);
  });

  it('can be renamed, and get another time of expiry', async () => {
    const { key } = await newKey(await newProject());
    const expiresAt = new Date('2100-01-01T00:00:00.000Z');
    expect(await access.changeKey(key.id, { name: 'renamed', expiresAt })).toEqual({
      ...key,
      ...{ name: 'renamed', expires_at: expiresAt },
    });
    expect(await access.changeKey(key.id, {})).toMatchObject({ name: 'renamed', expires_at: expiresAt });
    expect(await access.changeKey(key.id, { expiresAt: null })).toMatchObject({ expires_at: null });
  });

  it('are rotated: the secrets of before end after the overlap, and never later than they would have', async () => {
    const { key, text } = await newKey(await newProject());
    const second = await access.rotateKey(key.id, { overlapMs: 3_600_000 });
    const third = await access.rotateKey(key.id, { overlapMs: 60_000 });
    expect(new Set([text, second.text, third.text]).size).toBe(3);
    const inMinute = expect.toSatisfy((time: Date) => Math.abs(+time - Date.now() - 60_000) < 50_000);
    expect(third.key.secrets).toHaveLength(3);
    expect(third.key.secrets).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: keyIdOf(text), expires_at: inMinute }),
        expect.objectContaining({ id: keyIdOf(second.text), expires_at: inMinute }),
        expect.objectContaining({ id: keyIdOf(third.text), expires_at: null }),
      ]),
    );
    const fourth = await access.rotateKey(key.id, { overlapMs: 3_600_000 });
    expect(fourth.key.secrets.find(({ id }) => id === keyIdOf(text))).toMatchObject({ expires_at: inMinute });
    const expiresAt = new Date('2100-01-01T00:00:00.000Z');
    const last = await access.rotateKey(key.id, { overlapMs: 0, expiresAt });
    expect(last.key).toMatchObject({ expires_at: expiresAt, secrets: [{ id: keyIdOf(last.text) }] });
    const { secrets } = await access.state();
    const own = secrets.filter(({ principal }) => principal === key.id);
    expect(own.map(({ hash }) => isKey(last.text, hash))).toEqual([true]);
  });

  it('are removed when they are revoked, with all that is about them', async () => {
    const projectId = await newProject();
    const { key } = await newKey(projectId);
    const group = await access.createGroup({ name: 'of one' });
    await access.addMember(group.id, key.id);
    const subject = { kind: 'principal', id: key.id } as const;
    await access.createRule({ ...rule, subject });
    await access.createLimit({ ...limit, principal: key.id });
    await access.revokeKey(key.id);
    expect(JSON.stringify(await access.state())).not.toContain(key.id);
    await expect(access.revokeKey(key.id)).rejects.toMatchObject({ code: 'not_found' });
    await expect(access.changeKey(key.id, {})).rejects.toMatchObject({ code: 'not_found' });
    await expect(access.revokeKey('none')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('remember when they were used last, and do not announce it', async () => {
    const { key, text } = await newKey(await newProject());
    const other = await newKey(null);
    const [id, otherId] = [keyIdOf(text)!, keyIdOf(other.text)!];
    const at = (second: number) => new Date(Date.UTC(2026, 1, 1, 0, 0, second));
    await using client = await connectTo(database.name);
    await client.query('LISTEN switchboard');
    const announced: (string | undefined)[] = [];
    client.on('notification', ({ payload }) => announced.push(payload));
    await access.touchKeys([
      ...[
        { id, at: at(2) },
        { id: otherId, at: at(9) },
        { id, at: at(1) },
      ],
      { id: 'unknown', at: at(3) },
    ]);
    await access.touchKeys([{ id, at: at(0) }]);
    await access.touchKeys([]);
    expect((await access.getKey(key.id))!.secrets).toMatchObject([{ last_used_at: at(2) }]);
    expect((await access.getKey(other.key.id))!.secrets).toMatchObject([{ last_used_at: at(9) }]);
    await client.query("SELECT pg_notify('switchboard', 'end')");
    await expect.poll(() => announced).toEqual(['end']);
  });

  it('need a project that exists', async () => {
    for (const id of [unknownId, 'none']) {
      await expect(newKey(id)).rejects.toMatchObject({ code: 'unknown_project' });
    }
  });

  it('are nowhere in the database', async () => {
    const { key, text } = await newKey(await newProject());
    const rotated = await access.rotateKey(key.id, { overlapMs: 60_000 });
    const everything = await dump();
    expect(everything).toContain(keyIdOf(text));
    for (const { secret } of [text, rotated.text].map((one) => ({ secret: one.slice(16) }))) {
      expect(everything).not.toContain(secret);
      expect(everything).not.toContain(Buffer.from(secret, 'base64url').toString('hex'));
    }
  });
});

const rule: Omit<Rule, 'id'> = {
  ...{ effect: 'deny', project: undefined, subject: { kind: 'everyone' }, kind: undefined },
  ...{ server: '*', name: '*', readOnly: undefined, destructive: undefined },
};
const limit = {
  ...{ principal: undefined, project: undefined, server: undefined, tool: undefined },
  ...{ perMinute: 10, concurrent: undefined, isShared: false },
};

describe('groups', () => {
  it('have members, each once', async () => {
    const projectId = await newProject();
    const { key } = await newKey(projectId);
    const group = await access.createGroup({ name: 'builders', description: 'who build' });
    const member = { id: key.id, kind: 'key', name: key.name, project_id: projectId };
    await access.addMember(group.id, key.id);
    await access.addMember(group.id, key.id);
    const found = async () => (await access.listGroups()).find(({ id }) => id === group.id);
    expect(await found()).toEqual({ ...group, members: [member] });
    expect((await access.state()).members).toContainEqual({ group: group.id, principal: key.id });
    await access.removeMember(group.id, key.id);
    await access.removeMember(group.id, key.id);
    expect(await found()).toEqual({ ...group, members: [] });
    await access.removeGroup(group.id);
    expect(await found()).toBe(undefined);
  });

  it('have unique names, and exist', async () => {
    await access.createGroup({ name: 'unique' });
    await expect(access.createGroup({ name: 'unique' })).rejects.toMatchObject({
      ...{ code: 'conflict', message: expect.stringContaining('a group "unique" already') },
    });
    const { key } = await newKey(null);
    await expect(access.addMember(unknownId, key.id)).rejects.toMatchObject({ code: 'not_found' });
    await expect(access.removeGroup('none')).rejects.toMatchObject({ code: 'not_found' });
    const { id } = await access.createGroup({ name: 'empty' });
    await expect(access.addMember(id, unknownId)).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('grants', () => {
  it('give one role per holder and project, and replace the role of before', async () => {
    const projectId = await newProject();
    const { id } = await access.createGroup({ name: 'holders' });
    const holder = { kind: 'group', id } as const;
    const first = await access.grant({ holder, projectId, role: 'viewer' });
    const second = await access.grant({ holder, projectId, role: 'owner' });
    const everywhere = await access.grant({ holder, projectId: null, role: 'viewer' });
    expect(second).toEqual({ ...first, role: 'owner' });
    expect(await access.grant({ holder, projectId, role: 'owner' })).toEqual(second);
    expect((await access.listGrants()).filter(({ group_id }) => group_id === id)).toEqual([
      { ...second, principal_id: null, project_id: projectId, holder_name: 'holders' },
      everywhere,
    ]);
    expect((await access.state()).grants.filter((grant) => grant.holder.id === id)).toEqual(
      expect.arrayContaining([
        { holder, project: projectId, role: 'owner' },
        { holder, project: undefined, role: 'viewer' },
      ]),
    );
    await access.revokeGrant(second.id);
    await expect(access.revokeGrant(second.id)).rejects.toMatchObject({ code: 'not_found' });
    await expect(access.revokeGrant('none')).rejects.toMatchObject({ code: 'not_found' });
    expect((await access.state()).grants).not.toContainEqual({ holder, project: projectId, role: 'owner' });
  });

  it('need a holder and a project', async () => {
    const holder = { kind: 'principal', id: unknownId } as const;
    await expect(access.grant({ holder, projectId: null, role: 'viewer' })).rejects.toMatchObject({
      ...{ code: 'not_found', message: `There is no key or person with the id "${unknownId}".` },
    });
    const { key } = await newKey(null);
    await expect(
      access.grant({ holder: { kind: 'principal', id: key.id }, projectId: unknownId, role: 'viewer' }),
    ).rejects.toMatchObject({ code: 'unknown_project' });
  });
});

describe('rules and limits', () => {
  it('are kept as they are given', async () => {
    const project = await newProject();
    const { key } = await newKey(project);
    const group = await access.createGroup({ name: 'ruled' });
    const subjects: Subject[] = [
      { kind: 'everyone' },
      { kind: 'role', role: 'caller' },
      { kind: 'group', id: group.id },
      { kind: 'principal', id: key.id },
    ];
    const given: Omit<Rule, 'id'>[] = [
      rule,
      ...subjects.map((subject) => ({
        ...({ effect: 'allow', project, subject, kind: 'tool' } as const),
        ...{ server: 'git*', name: 'get_*', readOnly: true, destructive: false },
      })),
    ];
    const created = [];
    for (const each of given) created.push(await access.createRule(each));
    expect(created).toEqual(
      given.map((each) => ({
        ...each,
        id: expect.stringMatching(/^r[a-z0-9]{8}$/),
        createdAt: expect.any(Date),
      })),
    );
    expect((await access.state()).rules).toEqual(expect.arrayContaining(created));
    expect(await access.listRules()).toEqual(expect.arrayContaining(created));
    for (const { id } of created) await access.removeRule(id);
    await expect(access.removeRule(created[0]!.id)).rejects.toMatchObject({ code: 'not_found' });
    expect(JSON.stringify(await access.listRules())).not.toContain(created[1]!.id);
    const missing: Subject = { kind: 'group', id: unknownId };
    await expect(access.createRule({ ...rule, subject: missing })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  it('of limits too', async () => {
    const project = await newProject();
    const { key } = await newKey(project);
    const given = [
      limit,
      {
        ...{ principal: key.id, project, server: 'git*', tool: 'push' },
        ...{ perMinute: undefined, concurrent: 2, isShared: true },
      },
    ];
    const created = [];
    for (const each of given) created.push(await access.createLimit(each));
    expect(created).toEqual(
      given.map((each) => ({
        ...each,
        id: expect.stringMatching(/^l[a-z0-9]{8}$/),
        createdAt: expect.any(Date),
      })),
    );
    expect((await access.state()).limits).toEqual(expect.arrayContaining(created));
    expect(await access.listLimits()).toEqual(expect.arrayContaining(created));
    for (const { id } of created) await access.removeLimit(id);
    await expect(access.removeLimit('l')).rejects.toMatchObject({ code: 'not_found' });
    expect(await access.listLimits()).not.toContainEqual(created[0]);
  });
});

it('a project takes along what belongs to it, and that is announced', async () => {
  const projectId = await newProject();
  const { key } = await newKey(projectId);
  const elsewhere = await newKey(null);
  const holder = { kind: 'principal', id: elsewhere.key.id } as const;
  await access.grant({ holder, projectId, role: 'owner' });
  const { id } = await access.createRule({ ...rule, project: projectId });
  const { id: limitId } = await access.createLimit({ ...limit, project: projectId });
  const projects: (string | undefined)[] = [];
  const changes: string[] = [];
  const unsubscribe = [
    store.subscribe((changed) => projects.push(changed)),
    store.subscribeAccess(() => changes.push('access')),
  ];
  await store.projects.delete(projectId, undefined);
  await expect.poll(() => changes.length).toBeGreaterThan(0);
  await expect.poll(() => projects).toContain(projectId);
  for (const stop of unsubscribe) stop();
  expect(projects).not.toContain('access');
  const state = JSON.stringify(await access.state());
  for (const gone of [projectId, key.id, id, limitId]) expect(state).not.toContain(gone);
  expect(state).toContain(elsewhere.key.id);
});

it('every change is announced, to those who follow access alone', async () => {
  const projectId = await newProject();
  const projects: (string | undefined)[] = [];
  let announced = 0;
  const unsubscribe = [
    store.subscribe((changed) => projects.push(changed)),
    store.subscribeAccess(() => announced++),
  ];
  let key = '';
  let group = '';
  let granted = '';
  let ruled = '';
  let limited = '';
  const changes: (() => Promise<unknown>)[] = [
    async () => (key = (await newKey(projectId)).key.id),
    () => access.changeKey(key, { name: 'another' }),
    () => access.rotateKey(key, { overlapMs: 0 }),
    async () => (group = (await access.createGroup({ name: 'announced' })).id),
    () => access.addMember(group, key),
    async () =>
      (granted = (await access.grant({ holder: { kind: 'group', id: group }, projectId, role: 'viewer' }))
        .id),
    async () => (ruled = (await access.createRule(rule)).id),
    async () => (limited = (await access.createLimit(limit)).id),
    () => access.removeLimit(limited),
    () => access.removeRule(ruled),
    () => access.revokeGrant(granted),
    () => access.removeMember(group, key),
    () => access.removeGroup(group),
    () => access.revokeKey(key),
  ];
  for (const [index, change] of changes.entries()) {
    await change();
    await expect.poll(() => announced).toBe(index + 1);
  }
  for (const stop of unsubscribe) stop();
  // The creation of the project may have been announced late.
  expect(projects.filter((id) => id !== projectId)).toEqual([]);
});

it('reads the state of many principals', async () => {
  await using client = await connectTo(database.name);
  await client.query(`
    WITH added AS (
      INSERT INTO kb.principals (kind, name) SELECT 'key', 'many ' || n FROM generate_series(1, 10000) AS n RETURNING id
    ), granted AS (
      INSERT INTO kb.grants (principal_id, role) SELECT id, 'caller' FROM added
    )
    INSERT INTO kb.keys (id, principal_id, hash)
      SELECT left(id::text, 12), id, sha256(id::text::bytea) FROM added LIMIT 1000 ON CONFLICT DO NOTHING
  `);
  const start = performance.now();
  const { principals } = await access.state();
  const milliseconds = Math.round(performance.now() - start);
  console.log(`${principals.length} principals were read in ${milliseconds} ms`);
  expect(principals.length).toBeGreaterThanOrEqual(10_000);
  await client.query("DELETE FROM kb.principals WHERE name LIKE 'many %'");
});

/** Every row of every table, as text. */
async function dump(): Promise<string> {
  await using client = await connectTo(database.name);
  const { rows } = await client.query<{ name: string }>(
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'kb'",
  );
  const texts: string[] = [];
  for (const { name } of rows) {
    const found = await client.query<{ text: string }>(`SELECT t::text AS text FROM kb.${name} AS t`);
    texts.push(...found.rows.map(({ text }) => text));
  }
  return texts.join('\n');
}

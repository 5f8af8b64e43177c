import { describe, expect, it } from 'vitest';
import { connectTo, freshDatabase } from '../../test/helpers/database.ts';
import { openTestStore, storeForTests } from '../../test/helpers/store.ts';
import { moveCredentials } from '../config.ts';
import type { AuditRow } from './audit/entry.ts';

const { store, newProject } = await storeForTests();

const actor = { kind: 'person', id: 'id of ann', name: 'Ann', address: '192.0.2.1' } as const;
const by = store.by(actor);

/** The entries that the work adds. */
async function entriesOf(work: () => Promise<unknown>): Promise<AuditRow[]> {
  const { lastSeq = 0 } = await store.audit.verify();
  await work();
  const entries: AuditRow[] = [];
  for await (const entry of store.audit.each()) if (entry.seq > lastSeq) entries.push(entry);
  return entries;
}

/** The action and subject of each. */
async function actionsOf(work: () => Promise<unknown>): Promise<string[]> {
  return (await entriesOf(work)).map(({ action, subject }) => `${action} ${subject}`);
}

const server = (name: string, config: Record<string, unknown> = { command: 'none' }) => ({
  ...{ name, transport: 'stdio' as const, description: '', enabled: true, settings: {}, config },
});

const hosted = (name: string) => ({
  ...{ name, enabled: true, resource_limits: { cpu: '1', memory: '1G', disk: '1G', pids: 10 } },
  mcp_config: {
    ...{ image: 'an-image', command: null, args: [], stdio_bridge: false, restart_policy: 'always' as const },
    ...{ environment: { API_KEY: 'hunter2-of-hosted' }, port: null, host_port: null, path: '/mcp' },
    ...{ network: false, volumes: [], writable_root: false, provider: null },
  },
});

const product = (version: string, servers: readonly string[]) => ({
  ...{ name: 'tools', version, servers: servers.map((name) => server(name)) },
  manifest: { mcp: { servers: servers.map((name) => ({ name, env: { TOKEN: 'hunter2-of-product' } })) } },
});

describe('an entry', () => {
  it('names the actor, what was changed, and how', async () => {
    const id = await newProject();
    const { name } = (await store.projects.get(id))!.project;
    const [entry, ...others] = await entriesOf(() =>
      by.projects.change(id, { description: 'new' }, undefined),
    );
    const row = {
      id,
      name,
      description: '',
      record_payloads: false,
      retention_days: 30,
      names: 'model-safe',
    };
    expect(entry).toMatchObject({
      ...{ actor_kind: 'person', actor_id: 'id of ann', actor_name: 'Ann', address: '192.0.2.1' },
      ...{ action: 'project.change', project_id: id, project_name: name, subject: name, outcome: 'done' },
      ...{ rule_id: null, count: 1, before: row, after: { ...row, description: 'new' } },
    });
    expect(others).toEqual([]);
  });

  it('names Switchboard itself without another actor', async () => {
    const [entry] = await entriesOf(() => newProject());
    expect(entry).toMatchObject({
      ...{ actor_kind: 'system', actor_id: 'system', actor_name: 'Switchboard', address: null },
    });
  });

  it('is written for every change of a project and of what it runs', async () => {
    let id = '';
    let box = '';
    const steps: [string[], () => Promise<unknown>][] = [
      [['project.create audited'], async () => (id = (await by.projects.create({ name: 'audited' })).id)],
      [['project.change audited'], () => by.projects.change(id, { name: 'renamed' }, undefined)],
      [
        ['server.create a', 'server.create b'],
        () => by.servers.create(id, [server('a'), server('b')], false),
      ],
      [
        ['server.change b', 'server.create c'],
        () => by.servers.create(id, [server('a'), server('b', { command: 'some' }), server('c')], true),
      ],
      [['server.change a'], () => by.servers.change(id, 'a', { name: 'aa', enabled: false }, undefined)],
      [['server.switch aa'], () => by.servers.change(id, 'aa', { enabled: true }, undefined)],
      [[], () => by.servers.change(id, 'aa', { enabled: true }, undefined)],
      [['server.remove aa'], () => by.servers.delete(id, 'aa', undefined)],
      [['tool.switch b/t'], () => by.projects.setSwitch(id, 'b', 't', false)],
      [[], () => by.projects.setSwitch(id, 'b', 't', false)],
      [['server.switch file'], () => by.projects.setSwitch(id, 'file', null, false)],
      [['server.switch file'], () => by.projects.setSwitch(id, 'file', null, true)],
      [['product.install tools'], () => by.products.install(id, product('1', ['p', 'q']), [])],
      [['product.install tools'], () => by.products.install(id, product('2', ['q', 'r']), [])],
      [['product.remove tools'], () => by.products.remove(id, 'tools')],
      [['secret.set TOKEN'], () => by.secrets.put(id, 'TOKEN', 'hunter2')],
      [[], () => by.secrets.put(id, 'TOKEN', 'hunter2')],
      [['secret.set TOKEN'], () => by.secrets.put(id, 'TOKEN', 'hunter3')],
      [['secret.rotate null'], () => by.secrets.rotate()],
      [['secret.remove TOKEN'], () => by.secrets.delete(id, 'TOKEN')],
      [['hosted.create box'], async () => (box = (await by.hosted.create(id, hosted('box'))).id)],
      [['hosted.change box'], () => by.hosted.change(box, { enabled: false }, undefined)],
      [[], () => by.hosted.change(box, { enabled: false }, undefined)],
      [[], () => by.hosted.setStatus(box, { status: 'ready' })],
      [['hosted.remove box'], () => by.hosted.delete(box, undefined)],
      [['project.remove renamed'], () => by.projects.delete(id, undefined)],
    ];
    for (const [expected, work] of steps) expect(await actionsOf(work)).toEqual(expected);
    const { entries } = await store.audit.list({ project: id, limit: 100 });
    expect(new Set(entries.map(({ actor_name }) => actor_name))).toEqual(new Set(['Ann']));
    expect(new Set(entries.map(({ project_name }) => project_name))).toEqual(new Set(['audited', 'renamed']));
    expect(JSON.stringify(entries)).not.toContain('hunter');
  });

  it('is written for every change of access', async () => {
    const projectId = await newProject();
    const { access } = by;
    const rule = {
      ...({ effect: 'deny', project: projectId, subject: { kind: 'everyone' }, kind: undefined } as const),
      ...{ server: '*', name: 'delete_*', readOnly: undefined, destructive: undefined },
    };
    const limit = {
      ...{ principal: undefined, project: projectId, server: undefined, tool: undefined },
      ...{ perMinute: 10, concurrent: undefined, isShared: false },
    };
    let key = '';
    let publicId = '';
    let group = '';
    let grant = '';
    let ruled = '';
    let limited = '';
    const give = (role: 'viewer' | 'owner') => async () =>
      (grant = (await access.grant({ holder: { kind: 'group', id: group }, projectId, role })).id);
    const create = async () => {
      const made = await access.createKey({ name: 'ci', projectId, role: 'caller', expiresAt: null });
      [key, publicId] = [made.key.id, made.key.secrets[0]!.id];
    };
    const steps: [string[], () => Promise<unknown>][] = [
      [['key.create ci'], create],
      [['key.change ci'], () => access.changeKey(key, { name: 'cd' })],
      [[], () => access.changeKey(key, { name: 'cd', expiresAt: null })],
      [['key.change cd'], () => access.changeKey(key, { expiresAt: new Date('2100-01-01') })],
      [['key.rotate cd'], () => access.rotateKey(key, { overlapMs: 60_000 })],
      [[], () => access.touchKeys([{ id: publicId, at: new Date() }])],
      [['group.create all'], async () => (group = (await access.createGroup({ name: 'all' })).id)],
      [['group.join all'], () => access.addMember(group, key)],
      [[], () => access.addMember(group, key)],
      [['role.grant all'], give('viewer')],
      [['role.grant all'], give('owner')],
      [[], give('owner')],
      [['role.revoke all'], () => access.revokeGrant(grant)],
      [['group.leave all'], () => access.removeMember(group, key)],
      [[], () => access.removeMember(group, key)],
      [['group.remove all'], () => access.removeGroup(group)],
      [['key.revoke cd'], () => access.revokeKey(key)],
    ];
    for (const [expected, work] of steps) expect(await actionsOf(work)).toEqual(expected);
    const others = await entriesOf(async () => {
      ruled = (await access.createRule(rule)).id;
      await access.removeRule(ruled);
      limited = (await access.createLimit(limit)).id;
      await access.removeLimit(limited);
    });
    const ruleRow = {
      id: ruled,
      effect: 'deny',
      subject: { kind: 'everyone' },
      server: '*',
      name: 'delete_*',
    };
    const limitRow = { id: limited, perMinute: 10, isShared: false };
    expect(others).toMatchObject([
      { action: 'rule.create', project_id: projectId, subject: ruled, before: null, after: ruleRow },
      { action: 'rule.remove', project_id: projectId, subject: ruled, before: ruleRow, after: null },
      { action: 'limit.create', project_id: projectId, subject: limited, before: null, after: limitRow },
      { action: 'limit.remove', project_id: projectId, subject: limited, before: limitRow, after: null },
    ]);
    const { entries } = await store.audit.list({ action: 'role', limit: 3 });
    expect(entries.map(({ before, after }) => [before, after])).toMatchObject([
      [{ id: grant, role: 'owner', holder: { kind: 'group', id: group, name: 'all' } }, null],
      [{ role: 'viewer' }, { role: 'owner' }],
      [null, { role: 'viewer' }],
    ]);
  });

  it('is not written for a change that fails, and no change is made without its entry', async () => {
    const id = await newProject();
    await by.servers.create(id, [server('a')], false);
    await by.access.createKey({ name: 'taken', projectId: id, role: 'caller', expiresAt: null });
    const failing: (() => Promise<unknown>)[] = [
      () => by.servers.create(id, [server('fine'), server('a')], false),
      () => by.projects.change(id, { name: 'default' }, undefined),
      () => by.projects.change(id, { description: 'new' }, 99),
      () => by.access.createKey({ name: 'taken', projectId: id, role: 'caller', expiresAt: null }),
      () => by.secrets.delete(id, 'NONE'),
    ];
    const entries = await entriesOf(async () => {
      for (const work of failing) await expect(work()).rejects.toThrow();
    });
    expect(entries).toEqual([]);

    await using database = await freshDatabase();
    await using other = await openTestStore({ url: database.url });
    await using client = await connectTo(database.name);
    await client.query("ALTER TABLE kb.audit_log ADD CHECK (action <> 'project.create')");
    await expect(other.projects.create({ name: 'unnoticed' })).rejects.toThrow('audit_log');
    expect(await other.projects.all()).toHaveLength(1);
  });
});

it.each([
  ['stay in place', undefined, 0],
  // Those are secrets that somebody set.
  ['become secrets', moveCredentials, 4],
])('the log has no credential, no key and no hash, if credentials %s', async (_what, move, moved) => {
  await using database = await freshDatabase();
  const options = move === undefined ? {} : { moveCredentials: move };
  await using other = await openTestStore({ url: database.url, ...options });
  const tables = other.by(actor);
  const { id } = await tables.projects.create({ name: 'hidden' });
  const config = {
    ...{ command: 'none', args: ['--api-key=hunter2-of-args'], env: { TOKEN: 'hunter2-of-env' } },
    url: 'https://user:hunter2-of-url@example.com',
    headers: { Authorization: 'Bearer hunter2-of-header' },
  };
  await tables.servers.create(id, [server('a', config)], false);
  await tables.servers.change(id, 'a', { config: { ...config, cwd: '/' } }, undefined);
  await tables.products.install(id, product('1', ['p']), []);
  const box = await tables.hosted.create(id, hosted('box'));
  await tables.hosted.change(box.id, { enabled: false }, undefined);
  await tables.secrets.put(id, 'OWN', 'hunter2-of-secret');
  await tables.secrets.rotate();
  const input = { name: 'ci', projectId: id, role: 'caller', expiresAt: null } as const;
  const { key, text } = await tables.access.createKey(input);
  const rotated = await tables.access.rotateKey(key.id, { overlapMs: 60_000 });
  const hidden = await hiddenIn(database.name);
  await tables.access.revokeKey(key.id);
  await tables.servers.delete(id, 'a', undefined);
  await tables.hosted.delete(box.id, undefined);
  await tables.products.remove(id, 'tools');

  const log = await logOf(database.name);
  const never = ['hunter2', ...[text, rotated.text].map((one) => one.slice(16)), ...hidden];
  expect(never.filter((secret) => log.includes(secret))).toEqual([]);
  expect(log).toContain(move === undefined ? '***' : '${');
  expect(await other.audit.verify()).not.toHaveProperty('problem');
  const { entries } = await other.audit.list({ action: 'secret.set', limit: 100 });
  expect(entries.filter(({ subject }) => subject !== 'OWN').length).toBeGreaterThanOrEqual(moved);
});

async function logOf(database: string): Promise<string> {
  await using client = await connectTo(database);
  const { rows } = await client.query<{ text: string }>(
    "SELECT (to_jsonb(log) - 'hash' - 'previous')::text AS text FROM kb.audit_log AS log",
  );
  return rows.map(({ text }) => text).join('\n');
}

/** Hashes and ciphertexts, as they may be written. */
async function hiddenIn(database: string): Promise<string[]> {
  await using client = await connectTo(database);
  const { rows } = await client.query<{ bytes: Buffer }>(
    'SELECT hash AS bytes FROM kb.keys UNION SELECT ciphertext FROM kb.secrets',
  );
  return rows.flatMap(({ bytes }) =>
    (['hex', 'base64'] as const).map((encoding) => bytes.toString(encoding).slice(0, 20)),
  );
}

import { beforeAll, describe, expect, it } from 'vitest';
import { exchange, type RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import type { Sighting } from '../helpers/witness.ts';
import { AccessScene, bearer } from './scene.ts';

const long = 'x'.repeat(80);

describe('a caller with rules', () => {
  let scene: AccessScene;
  let caller: { id: string; name: string; key: string };
  let operator: { id: string; key: string };
  let session: RawSession;
  let free: RawSession;

  setUp(async (use) => {
    scene = use(
      await AccessScene.start({
        servers: {
          github: fixtureServer('offers-guarded-items'),
          // Another server with the same names, so that both get a prefix.
          gitlab: { ...fixtureServer('offers-guarded-items'), enabled: true },
          hidden: fixtureServer('notes', { NOTES_OF: 'hidden' }),
          [long]: fixtureServer('offers-guarded-items'),
        },
      }),
    );
  });
  beforeAll(async () => {
    caller = await scene.newKey();
    operator = await scene.newKey({ role: 'operator' });
    const subject = { principal: caller.id };
    for (const rule of [
      { subject, kind: 'tool', name: '*_repo' },
      { subject, kind: 'prompt', name: 'leak' },
      { subject, kind: 'resource', name: '*/secret/*' },
      { subject, server: 'hidden' },
      { subject: { role: 'operator' }, kind: 'tool', server: 'github', name: 'delete_repo' },
    ])
      await scene.addRule(rule);
    session = await scene.session(caller.key);
    free = await scene.session(await scene.addKey());
  });

  const audited = (subject: string) =>
    scene.audited(
      `principal=${caller.id}&outcome=denied`,
      (entry) => entry.subject?.includes(subject) === true,
    );

  it('does not see what they deny, and everything else has the same names as for others', async () => {
    const [mine, all] = [await session.toolNames(), await free.toolNames()];
    expect(mine).toEqual(all.filter((name) => mine.includes(name)));
    // One of `list_repos`, `create_issue`, `touch`, `wait` on each of three servers.
    expect(mine).toHaveLength(12);
    expect(mine).toContain('github__list_repos');
    expect(mine.some(isOfHidden)).toBe(false);
    expect(all.some(isOfHidden)).toBe(true);
    expect(mine.some((name) => name.includes('delete'))).toBe(false);
    const prompts = async (of: RawSession) =>
      ((await of.request('prompts/list')).result!.prompts as { name: string }[]).map(({ name }) => name);
    expect(await prompts(session)).not.toContain('github__leak');
    expect(await prompts(session)).not.toContain('summarize');
    expect(await prompts(free)).toContain('github__leak');
    const text = JSON.stringify([
      await session.request('resources/list'),
      await session.request('resources/templates/list'),
      await session.request('tools/list'),
    ]);
    expect(text).not.toContain('secret/plan');
    expect(text).not.toContain('hidden');
  });

  const isOfHidden = (name: string) =>
    ['touch', 'refer', 'announce'].some((own) => name === `hidden__${own}` || name === own);

  it.each([
    'github__delete_repo',
    'delete_repo',
    'gitlab__delete_repo',
    'GITHUB__delete_repo',
    'github__DELETE_REPO',
    'github__Delete_Repo',
    'default__github__delete_repo',
    'github/delete_repo',
    'github__delete_repo ',
    `${long}__delete_repo`,
    'hidden__refer',
    'refer',
  ])('cannot call it as %s, and cannot tell that it exists', async (name) => {
    const never = name.replaceAll(/delete_repo|refer/gi, 'qqqq_xyzw');
    const [denied, unknown] = [await session.call(name), await session.call(never)];
    expect(denied.result).toBeUndefined();
    expect(denied.error?.code).toBe(-32602);
    expect(denied.error?.message).toBe(`Unknown tool: ${name}`);
    expect(unknown.error?.message).toBe(`Unknown tool: ${never}`);
  });

  it('cannot call it by its fitted name either', async () => {
    const fitted = (await free.toolNames()).filter((name) => name.includes('xxxx') && !/^x{80}/.test(name));
    const denied = fitted.filter((name) => name.includes('repo') || name.includes('delete'));
    for (const name of denied) {
      if ((await session.toolNames()).includes(name)) continue;
      expect((await session.call(name)).error?.code).toBe(-32602);
    }
    expect(fitted.length).toBeGreaterThan(0);
  });

  it('is audited with the rule when it tries', async () => {
    await session.call('github__delete_repo');
    const entry = await audited('delete_repo');
    expect(entry).toMatchObject({ action: 'call', outcome: 'denied', actor: { id: caller.id } });
    expect(entry.rule).toMatch(/^r/);
  });

  it('a denial names its rule to those who may know', async () => {
    const knowing = await scene.session(operator.key);
    const { error } = await knowing.call('github__delete_repo');
    expect(error?.message).toContain('denied by the rule');
    expect(error?.data).toMatchObject({ code: 'forbidden', rule: expect.stringMatching(/^r/) });
    expect((await knowing.call('gitlab__delete_repo')).error).toBeUndefined();
  });

  it.each([
    'file:///secret/plan.txt',
    'resource://github/file:///secret/plan.txt',
    'resource://gitlab/file:///secret/plan.txt',
    'resource://github/FILE:///SECRET/plan.txt',
    'resource://github/file:///public/../secret/plan.txt',
    'resource://github/file:///public/%2e%2e/secret/plan.txt',
    'resource://github/file:///%73ecret/plan.txt',
    'resource://github/file:///%2573ecret/plan.txt',
    'resource://github/file:///public%2f..%2fsecret%2fplan.txt',
    'resource://github/file:////secret//plan.txt',
    'resource://github/file:///secret\\plan.txt',
    'resource://github/file:///public\\..\\secret\\plan.txt',
    'resource://github/file://localhost/secret/plan.txt',
    'resource://github/file:///./secret/plan.txt#part',
    'resource://github/file:///secret/plan.txt?query',
    'resource://gitlab/resource://github/file:///secret/plan.txt',
    'resource://default/github/file:///secret/plan.txt',
    'resource://hidden/note://todo',
    'note://todo',
  ])('cannot read, subscribe to or complete %s', async (uri) => {
    for (const method of ['resources/read', 'resources/subscribe']) {
      const { result, error } = await session.request(method, { uri });
      expect(result, method).toBeUndefined();
      expect(error!.message, method).toMatch(/^Unknown resource: /);
    }
  });

  it('reads what is left', async () => {
    const { result } = await session.request('resources/read', {
      uri: 'resource://github/file:///public/readme.txt',
    });
    expect(JSON.stringify(result)).toContain('text of file:///public/readme.txt');
  });

  it.each([
    { type: 'ref/resource', uri: 'resource://github/file:///{+path}' },
    { type: 'ref/prompt', name: 'github__leak' },
    { type: 'ref/prompt', name: 'leak' },
    { type: 'ref/prompt', name: 'GITHUB__LEAK' },
    { type: 'ref/prompt', name: 'hidden__summarize' },
  ])('gets no completions of $uri$name', async (ref) => {
    const { result, error } = await session.request('completion/complete', {
      ref,
      argument: { name: 'path', value: '' },
    });
    expect(result).toBeUndefined();
    expect(error).toBeDefined();
    const all = await free.request('completion/complete', {
      ref: { type: 'ref/resource', uri: 'resource://github/file:///{+path}' },
      argument: { name: 'path', value: '' },
    });
    expect(all.error).toBeUndefined();
  });

  it.each(['leak', 'github__leak', 'gitlab__leak', 'github__LEAK', 'hidden__summarize', 'summarize'])(
    'cannot get the prompt %s',
    async (name) => {
      const { result, error } = await session.request('prompts/get', { name });
      expect([result, error?.message]).toEqual([undefined, `Unknown prompt: ${name}`]);
    },
  );

  it('has the same in the modern era', async () => {
    const client = scene.modern(caller.key);
    expect(await client.toolNames()).toEqual(await session.toolNames());
    expect((await client.call('github__delete_repo')).error?.message).toBe(
      'Unknown tool: github__delete_repo',
    );
    const read = await client.request('resources/read', { uri: 'resource://github/file:///secret/plan.txt' });
    expect(read.error?.message).toMatch(/^Unknown resource/);
    const honoured = await client.listen({
      resourceSubscriptions: [
        'resource://github/file:///secret/plan.txt',
        'resource://github/file:///public/readme.txt',
      ],
    });
    expect(honoured.honoured).toEqual({
      resourceSubscriptions: ['resource://github/file:///public/readme.txt'],
    });
    await honoured.stream.cut();
  });

  it('learns nothing of it from the API, from hints at similar names, or from instructions', async () => {
    const near = await session.call('delete_repos');
    expect(near.error?.message).not.toContain('delete_repo,');
    expect(JSON.stringify(near)).not.toContain('github__delete_repo');
    for (const path of ['/projects/default/tools', '/projects/default/servers', '/projects']) {
      const { text } = await scene.ask(`GET ${path}`, undefined, caller.key);
      expect(text, path).not.toContain('delete_repo');
      expect(text, path).not.toContain('hidden');
    }
  });

  it('is told the same by "can"', async () => {
    const can = (principal: string, name: string, kind = 'tool') =>
      scene.done<{ allowed: boolean; rule: { id: string } | null }>(
        `GET /can?${new URLSearchParams({ principal, action: 'call', project: 'default', kind, name })}`,
      );
    expect(await can(caller.id, 'github__delete_repo')).toMatchObject({
      allowed: false,
      rule: { id: expect.stringMatching(/^r/) },
    });
    expect(await can(caller.name, 'github__list_repos')).toMatchObject({ allowed: true, rule: null });
    const uri = 'resource://github/file:///public/../secret/plan.txt';
    expect(await can(caller.id, uri, 'resource')).toMatchObject({ allowed: false });
  });
});

describe('projects and roles', () => {
  let scene: AccessScene;
  setUp(async (use) => {
    scene = use(await AccessScene.start());
  });
  beforeAll(() => scene.addProject('research'));

  it("a key does not see another project, by path, header or metadata, exactly as if it didn't exist", async () => {
    const { id, key } = await scene.newKey({ role: 'owner' });
    for (const [path, headers] of [
      ['/mcp/research', {}],
      ['/mcp', { 'x-project-id': 'research' }],
    ] as const) {
      const [taken, missing] = await Promise.all(
        ['research', 'nothing'].map((name) =>
          scene.initialize(
            {
              ...bearer(key),
              ...('x-project-id' in headers ? { 'x-project-id': name } : {}),
            },
            path.replace('research', name),
          ),
        ),
      );
      expect([taken!.status, taken!.text.replaceAll('research', 'nothing')]).toEqual([
        missing!.status,
        missing!.text,
      ]);
      expect(taken!.text).toContain('unknown_project');
    }
    const session = await scene.session(key);
    const call = (projectId: string) => session.request('tools/list', { _meta: { projectId } });
    const [taken, missing] = [await call('research'), await call('nothing')];
    expect(taken.error?.message.replace('research', 'nothing')).toBe(missing.error?.message);
    for (const path of ['/projects/research', '/projects/research/tools', '/projects/research/secrets']) {
      const [one, other] = [
        await scene.ask(`GET ${path}`, undefined, key),
        await scene.ask(`GET ${path.replace('research', 'nothing')}`, undefined, key),
      ];
      expect([one.status, one.text.replaceAll('research', 'nothing')]).toEqual([other.status, other.text]);
    }
    await scene.audited(`principal=${id}`, ({ outcome }) => outcome === 'denied');
    expect((await scene.ask('GET /projects', undefined, key)).text).not.toContain('research');
    expect(await session.toolNames()).not.toContain('research__list_repos');
  });

  it('a viewer sees tools, and is told which role a call needs', async () => {
    const { id, key } = await scene.newKey({ role: 'viewer' });
    const session = await scene.session(key);
    expect(await session.toolNames()).toContain('list_repos');
    for (const request of [
      session.call('list_repos'),
      session.request('resources/read', { uri: 'file:///public/readme.txt' }),
      session.request('prompts/get', { name: 'review' }),
      session.request('resources/subscribe', { uri: 'file:///public/readme.txt' }),
      session.request('completion/complete', {
        ref: { type: 'ref/prompt', name: 'review' },
        argument: { name: 'x', value: '' },
      }),
    ]) {
      const { result, error } = await request;
      expect(result).toBeUndefined();
      expect(error?.data).toMatchObject({ code: 'forbidden' });
      expect(error?.message).toContain('role caller');
    }
    await scene.audited(
      `principal=${id}`,
      ({ action, outcome }) => action === 'call' && outcome === 'denied',
    );
  });

  it.each(['caller', 'operator', 'owner', 'admin'] as const)(
    'a key with the role %s calls tools',
    async (role) => {
      const key = await scene.addKey({ role, project: role === 'admin' ? undefined : 'default' });
      const session = await scene.session(key);
      expect(await session.callText('list_repos')).toBe('list_repos done');
      expect(await scene.modern(key).callText('list_repos')).toBe('list_repos done');
    },
  );

  it('principals with the same permissions share their lists', async () => {
    const keys = await Promise.all([1, 2, 3].map(() => scene.newKey()));
    const group = await scene.done<{ id: string }>('POST /groups', { name: 'readers' });
    for (const { id } of keys) await scene.done(`PUT /groups/${group.id}/members/${id}`, {});
    await scene.addRule({
      subject: { group: group.id },
      kind: 'tool',
      name: '*',
      read_only: false,
    });
    for (const { key } of keys) expect(await (await scene.session(key)).toolNames()).toEqual(['list_repos']);
  });

  it('a change of permissions reaches open sessions: lists, calls and subscriptions', async () => {
    const { id, key } = await scene.newKey();
    const session = await scene.session(key);
    const stream = await session.listen();
    const uri = 'resource://github/file:///secret/plan.txt';
    await session.request('resources/subscribe', { uri });
    const rule = await scene.addRule({
      subject: { principal: id },
      kind: 'resource',
      name: '*secret*',
    });
    await stream.message(({ method }) => method === 'notifications/resources/list_changed');
    expect((await session.request('resources/read', { uri })).error?.message).toMatch(/^Unknown resource/);
    await session.call('touch');
    // The update of the public file would come with it.
    await session.request('resources/subscribe', { uri: 'resource://github/file:///public/readme.txt' });
    await session.call('touch');
    await stream.message(
      ({ method, params }) => method === 'notifications/resources/updated' && params?.uri !== uri,
    );
    expect(
      stream.messages.filter(
        ({ method, params }) => method === 'notifications/resources/updated' && params?.uri === uri,
      ),
    ).toEqual([]);
    await scene.done(`DELETE /rules/${rule}`);
    expect((await session.request('resources/read', { uri })).error).toBeUndefined();
    await stream.cut();
  });

  it('a lost role ends the calls in flight', async () => {
    const { id, key } = await scene.newKey();
    const session = await scene.session(key);
    const called = session.call('wait');
    const modern = scene.modern(key).call('wait');
    await scene.witness.severalOf('github', 'message', 2, isWait);
    const { grants } = await scene.done<{ grants: { id: string; holder: { id: string } }[] }>('GET /grants');
    await scene.done(`DELETE /grants/${grants.find(({ holder }) => holder.id === id)!.id}`);
    for (const { error } of [await called, await modern])
      expect(error).toMatchObject({ data: { code: 'forbidden' } });
  });

  it('a revoked key ends its streams, sessions, calls and chats at once', async () => {
    const { id, key } = await scene.newKey();
    const session = await scene.session(key);
    const stream = await session.listen();
    const called = session.call('wait');
    const modern = scene.modern(key).call('wait');
    await scene.witness.sees(
      'github',
      'message',
      ({ method, params }) => method === 'tools/call' && (params as { name?: string })?.name === 'wait',
    );
    const events = endOfEvents(scene, key);
    await scene.done(`DELETE /keys/${id}`);
    await Promise.all([stream.ended, events]);
    for (const { error } of [await called, await modern])
      expect(error).toMatchObject({ data: { code: 'unauthorized' } });
  });
});

function isWait({ method, params }: Sighting): boolean {
  return method === 'tools/call' && (params as { name?: string } | undefined)?.name === 'wait';
}

/** Resolves when the event stream of the project ends. */
function endOfEvents(scene: AccessScene, key: string): Promise<unknown> {
  return exchange(`${scene.switchboard.baseUrl}/api/v1/projects/default/events`, {
    method: 'GET',
    headers: bearer(key),
  }).catch(() => undefined);
}

import { beforeAll, describe, expect, it } from 'vitest';
import type { ChatView, RunList, RunView } from '../../src/api/chat-views.ts';
import type { CallList } from '../../src/api/views.ts';
import { AccessScene, bearer } from '../access/scene.ts';
import {
  API_KEY,
  calls,
  type MessagesApi,
  type Reply,
  says,
  startMessagesApi,
} from '../agent/messages-api.ts';
import { EventStream, openExchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';

type Key = Awaited<ReturnType<AccessScene['newKey']>>;

let scene: AccessScene;
let model: MessagesApi;
/** What the model does in its first turn. */
let firstTurn: () => Reply | Promise<Reply> = () => says('Well.');

setUp(async (use) => {
  model = use(
    await startMessagesApi(({ body }) => (body.messages.length === 1 ? firstTurn() : says('Well.'))),
  );
  scene = use(await AccessScene.start({ settings: { chat: { baseUrl: model.url } } }));
  await scene.done('PUT /projects/default/secrets/ANTHROPIC_API_KEY', { value: API_KEY });
});

const chat = ({ key }: Key, body: object = {}) =>
  scene.done<ChatView>('POST /projects/default/chat', { input: 'Hi!', ...body }, key);

async function stream({ key }: Key): Promise<EventStream> {
  const url = `${scene.switchboard.baseUrl}/api/v1/projects/default/chat`;
  const headers = { ...bearer(key), 'content-type': 'application/json' };
  return new EventStream(await openExchange(url, { headers, body: { input: 'Hi!', stream: true } }));
}

describe('the tools of a chat', () => {
  let caller: Key;
  beforeAll(async () => {
    await scene.addRule({ subject: { role: 'caller' }, name: 'delete_*' });
    caller = await scene.newKey();
  });

  it('are those that the sender may call', async () => {
    firstTurn = () => says('Well.');
    await chat(caller);
    const offered = model.requests.items.at(-1)!.body.tools?.map((tool) => 'name' in tool && tool.name);
    expect(offered).toContain('list_repos');
    expect(offered).not.toContain('delete_repo');
  });

  it('are paid with the usual secret, unless an operator names another', async () => {
    await scene.done('PUT /projects/default/secrets/OTHER', { value: API_KEY });
    firstTurn = () => says('Well.');
    for (const secret of ['OTHER', 'NEVER']) {
      const body = { input: 'Hi!', api_key_secret: secret };
      const answer = await scene.ask('POST /projects/default/chat', body, caller.key);
      expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('operator')]);
    }
    await chat(await scene.newKey({ role: 'operator' }), { api_key_secret: 'OTHER' });
  });

  it('are decided again for each call, and each denial is in the audit log', async () => {
    firstTurn = () => calls({ name: 'delete_repo' });
    const { tool_calls } = await chat(caller);
    expect(tool_calls).toMatchObject([{ name: 'delete_repo', server: null, is_error: true }]);
    const changing = await scene.newKey();
    let rule = '';
    firstTurn = async () => {
      rule = await scene.addRule({ subject: { principal: changing.id }, name: 'list_*' });
      return calls({ name: 'list_repos' });
    };
    const { tool_calls: denied } = await chat(changing);
    expect(denied).toMatchObject([{ name: 'list_repos', is_error: true }]);
    expect(denied[0]!.text).toContain('Unknown tool');
    expect(
      await scene.audited(`principal=${changing.id}`, ({ outcome }) => outcome === 'denied'),
    ).toMatchObject({
      rule,
    });
  });

  it('count for limits, and in records of calls, as those of the sender', async () => {
    firstTurn = () => calls({ name: 'list_repos' }, { name: 'list_repos' });
    const limited = await scene.newKey();
    await scene.done('POST /limits', { principal: limited.id, tool: 'list_*', per_minute: 1 });
    const { tool_calls } = await chat(limited);
    expect(tool_calls.map(({ is_error }) => is_error).toSorted()).toEqual([false, true]);
    expect(tool_calls.find(({ is_error }) => is_error)?.text).toContain('limit');
    const query = `principal=${limited.id}`;
    const { calls: recorded } = await scene.done<CallList>(`GET /projects/default/calls?${query}`);
    expect(recorded).toMatchObject([{ client: 'chat', principal: { name: limited.name } }]);
  });
});

describe('a run', () => {
  let mine: Key;
  let others: (Key | undefined)[];
  beforeAll(async () => {
    mine = await scene.newKey();
    others = [await scene.newKey(), await scene.newKey({ role: 'admin', project: undefined }), undefined];
  });

  it('belongs to who began it: for others it does not exist', async () => {
    firstTurn = () => says('Well.');
    const { run_id: id } = await chat(mine);
    const begun = await scene.done<{ id: string }>(
      'POST /projects/default/runs',
      { agent: 'helper', model: 'x', input: 'Hi!' },
      mine.key,
    );
    const list = async (key: Key | undefined) =>
      (await scene.done<RunList>('GET /projects/default/runs', undefined, key?.key)).runs.map(
        (run) => run.id,
      );
    expect(await list(mine)).toEqual([begun.id, id]);
    const call = { id, step: 1, tool: 'x', server: 'native', status: 'ok', input: {}, duration_ms: 1 };
    const attempts: [string, object?][] = [
      [`GET /projects/default/runs/${id}`],
      [`GET /projects/default/runs/${begun.id}`],
      [`PATCH /projects/default/runs/${begun.id}`, { status: 'completed' }],
      [`POST /projects/default/runs/${begun.id}/calls`, { calls: [call] }],
    ];
    for (const other of others) {
      expect(await list(other)).toEqual([]);
      for (const [what, body] of attempts) {
        const answer = await scene.ask(what, body, other?.key);
        const never = await scene.ask(what.replaceAll(/[\da-f-]{36}/g, 'never'), body, other?.key);
        expect(answer.status, what).toBe(404);
        expect(answer.text.replaceAll(/[\da-f-]{36}/g, 'never')).toBe(never.text);
      }
    }
    const path = `/projects/default/runs/${begun.id}`;
    expect(await scene.done<RunView>(`GET ${path}`, undefined, mine.key)).toMatchObject({
      status: 'running',
    });
    await scene.done(`POST ${path}/calls`, { calls: [call] }, mine.key);
    await scene.done(`PATCH ${path}`, { status: 'completed' }, mine.key);
    const after = await scene.done<RunView>(`GET ${path}`, undefined, mine.key);
    expect(after).toMatchObject({ status: 'completed', tool_calls: [{ principal: { id: mine.id } }] });
  });

  it('of the local user belongs to the local user', async () => {
    const { run_id: id } = await scene.done<ChatView>('POST /projects/default/chat', { input: 'Hi!' });
    expect((await scene.ask(`GET /projects/default/runs/${id}`)).status).toBe(200);
    expect((await scene.ask(`GET /projects/default/runs/${id}`, undefined, mine.key)).status).toBe(404);
  });
});

describe('a chat ends', () => {
  it.each<[string, string, (key: Key) => Promise<unknown>]>([
    ['its key is revoked', 'unauthorized', ({ id }) => scene.done(`DELETE /keys/${id}`)],
    [
      'its key may not chat any more',
      'forbidden',
      ({ id }) => scene.done('PUT /grants', { principal: id, project: 'default', role: 'viewer' }),
    ],
    ['its key has no role any more', 'forbidden', ({ id }) => revokeGrants(id)],
  ])('when %s', async (_when, code, end) => {
    firstTurn = () => calls({ name: 'wait' });
    const key = await scene.newKey();
    const events = await stream(key);
    await events.events.first(({ event }) => event === 'tool_start');
    await end(key);
    const { data } = await events.events.first(({ event }) => event === 'error');
    expect(JSON.parse(data!)).toMatchObject({ error: { code } });
    await events.ended;
  });
});

async function revokeGrants(holder: string): Promise<void> {
  const { grants } = await scene.done<{ grants: { id: string; holder: { id: string } }[] }>('GET /grants');
  for (const grant of grants) if (grant.holder.id === holder) await scene.done(`DELETE /grants/${grant.id}`);
}

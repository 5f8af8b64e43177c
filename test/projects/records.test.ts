import { describe, expect, it, onTestFinished } from 'vitest';
import type { CallList, CallView } from '../../src/api/views.ts';
import { answerJson, HttpPeer } from '../helpers/http-peer.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { databases, Site, type TestProject } from './site.ts';

const text = (words: string) => ({ content: [{ type: 'text', text: words }] });
const outcomes: Record<string, object | undefined> = {
  fine: { result: text('fine') },
  failing: { result: { ...text('it went wrong'), isError: true } },
  refusing: { error: { code: -32042, message: 'not today' } },
  hanging: undefined,
};

/** A server over HTTP with a tool for each outcome. */
async function startOutcomes(): Promise<HttpPeer> {
  const peer = await HttpPeer.start({
    far({ message, response }) {
      if (message?.method === 'tools/list') {
        const tools = Object.keys(outcomes).map((name) => ({ name, inputSchema: { type: 'object' } }));
        answerJson(response, { id: message.id, result: { tools } });
        return true;
      }
      if (message?.method !== 'tools/call') return false;
      const outcome = outcomes[String(message.params?.name)];
      if (outcome !== undefined) answerJson(response, { id: message.id, ...outcome });
      return true;
    },
  });
  onTestFinished(async () => peer[Symbol.asyncDispose]());
  return peer;
}

/** The newest calls, once this many are recorded. */
async function calls(project: TestProject, count: number, query = ''): Promise<CallView[]> {
  for (;;) {
    const page = await project.done<CallList>(`GET /calls${query}`);
    if (page.calls.length >= count) return page.calls;
  }
}

describe.each(databases)('records of calls (%s database)', (kind) => {
  let site: Site;

  setUp(async (use) => {
    site = use(await Site.start(kind));
  });

  it('[P9] have caller, tool, server, outcome and duration', async () => {
    const project = await site.project();
    const peer = await startOutcomes();
    const config = { url: `${peer.origin}/far` };
    await project.done('POST /servers', { name: 'far', transport: 'http', config, timeout_ms: 60_000 });
    const session = await project.session();
    const send = async (id: number, name: string, meta: object = {}) => {
      const params = { name, arguments: {}, _meta: meta };
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
      return { bytes: body.length, answer: session.post(body) };
    };
    const sizes: Record<string, number> = {};
    for (const [index, name] of ['fine', 'failing', 'refusing'].entries()) {
      const { bytes, answer } = await send(index, name);
      sizes[name] = bytes;
      await answer;
    }
    await (await send(10, 'hanging', { 'dev.switchboard/timeoutMs': 50 })).answer;
    const cancelled = await send(11, 'far__hanging');
    await peer.exchanges.several(2, ({ message }) => message?.params?.name === 'hanging');
    await session.notify('notifications/cancelled', { requestId: 11 });
    await cancelled.answer;
    await project.change('far', { timeout_ms: 1 });
    await (await send(12, 'hanging')).answer;

    const recorded = await calls(project, 6);
    expect(recorded.map(({ tool, status }) => [tool, status])).toEqual([
      ['hanging', 'timeout'],
      ['hanging', 'cancelled'],
      ['hanging', 'timeout'],
      ['refusing', 'error'],
      ['failing', 'tool_error'],
      ['fine', 'ok'],
    ]);
    const [timeout, , , refusing, failing, fine] = recorded;
    expect(fine).toEqual({
      id: expect.any(String),
      run_id: null,
      message_id: null,
      step: null,
      principal: { id: 'local', name: 'local user' },
      client: 'raw 1',
      method: 'tools/call',
      server: 'far',
      replica: 1,
      tool: 'fine',
      status: 'ok',
      duration_ms: expect.any(Number),
      input_bytes: sizes.fine,
      output_bytes: expect.any(Number),
      error: null,
      input: null,
      output: null,
      created_at: expect.any(String),
    });
    expect(fine!.output_bytes).toBeGreaterThan(JSON.stringify(outcomes.fine).length);
    expect(failing).toMatchObject({ error: null, input_bytes: sizes.failing });
    expect(refusing).toMatchObject({ error: { code: '-32042', message: 'not today' } });
    expect(timeout).toMatchObject({ error: { code: 'call_timeout' }, output_bytes: 0 });
    expect(timeout!.duration_ms).toBeGreaterThan(0);
  });

  it('[P9] include calls to a server that dies or cannot be started', async () => {
    const project = await site.project();
    await project.add('box');
    const client = await project.client();
    const pid = Number(await client.session.callText('pid'));
    const call = await client.waitingCall();
    const config = { command: '/no/such/program' };
    process.kill(pid, 'SIGKILL');
    await call.message(({ error }) => error !== undefined);
    await project.change('box', { config });
    expect(await client.errorOf('echo')).toBeDefined();
    expect((await calls(project, 3)).slice(0, 2)).toMatchObject([
      {
        tool: 'echo',
        server: 'box',
        status: 'error',
        error: { message: expect.stringContaining('/no/such') },
      },
      { tool: 'wait', server: 'box', status: 'error', error: { code: 'server_unavailable' } },
    ]);
  });

  it('[P9] name the replica that was called', async () => {
    const project = await site.project();
    await project.add('box', { replicas: 2, startup: 'parallel' });
    const session = await project.session();
    await project.reaches('box', ({ replicas }) => replicas.every(({ state }) => state === 'ready'));
    for (let call = 0; call < 4; call++) await session.callText('echo', { text: 'hello' });
    const replicas = (await calls(project, 4)).map(({ replica }) => replica);
    expect(replicas.toSorted()).toEqual([1, 1, 2, 2]);
  });

  it('[P9] include reads, prompts and completion, under the names of the server', async () => {
    const project = await site.project();
    await project.add('notes', { fixture: 'notes', env: { NOTES_OF: 'ours' } });
    const session = await project.session();
    await session.request('resources/read', { uri: 'resource://notes/note://todo' });
    await session.request('prompts/get', { name: 'notes__summarize' });
    await session.request('completion/complete', {
      ref: { type: 'ref/prompt', name: 'summarize' },
      argument: { name: 'a', value: 'b' },
    });
    const recorded = await calls(project, 3);
    expect(recorded.map(({ method, tool }) => [method, tool])).toEqual([
      ['completion/complete', 'summarize'],
      ['prompts/get', 'summarize'],
      ['resources/read', 'note://todo'],
    ]);
    // Lists are answered by Switchboard and not recorded.
    await session.toolNames();
    await session.call('touch', { uri: 'note://todo' });
    expect(await calls(project, 4)).toHaveLength(4);
  });

  it('[P9] belong to the project of the server, regardless of the caller', async () => {
    const [one, other] = [await site.project(), await site.project()];
    for (const project of [one, other]) await project.add('box');
    const session = await RawSession.open(`${site.baseUrl}/mcp`);
    await session.callText(`${one.name}__box__echo`, { text: 'hello' });
    await session.callText(`${other.name}__box__pid`);
    expect(await calls(one, 1)).toMatchObject([{ server: 'box', tool: 'echo' }]);
    expect(await calls(other, 1)).toMatchObject([{ server: 'box', tool: 'pid' }]);
  });

  it('[P9] include arguments and results only while the project enables that', async () => {
    const project = await site.project();
    await project.add('box');
    const session = await project.session();
    const echo = (words: string) => session.callText('echo', { text: words });
    await echo('before');
    await project.done('PATCH ', { record_payloads: true });
    await echo('while');
    await project.done('PATCH ', { record_payloads: false });
    await echo('after');
    expect((await calls(project, 3)).map(({ input, output }) => [input, output])).toEqual([
      [null, null],
      [{ text: 'while' }, text('while')],
      [null, null],
    ]);
    const rows = await site.query<{ text: string }>(
      'SELECT t::text AS text FROM kb.agent_run_tool_calls t WHERE project_id = $1',
      [project.id],
    );
    expect(rows.filter(({ text: row }) => /before|after/.test(row))).toEqual([]);
  });

  it('[P9] are stored for any content of arguments and results', async () => {
    const project = await site.project({ record_payloads: true });
    await project.add('box');
    const session = await project.session();
    const words = ['nul \0', 'half a pair \ud83d', 'x'.repeat(300_000), '💡 ü'];
    for (const word of words) expect(await session.callText('echo', { text: word })).toBe(word);
    const [plain, large, ...odd] = await calls(project, words.length);
    expect(plain).toMatchObject({ status: 'ok', input: { text: '💡 ü' }, output: text('💡 ü') });
    expect(JSON.stringify([large?.input, large?.output])).toContain('too many to be kept');
    expect(large?.input_bytes).toBeGreaterThan(300_000);
    expect(odd.map(({ status }) => status)).toEqual(['ok', 'ok']);
    expect((await project.done<CallList>('GET /calls')).dropped).toBe(0);
  });

  it('[P9] are filtered by server, tool, status and time, in pages', async () => {
    const project = await site.project();
    const peer = await startOutcomes();
    await project.add('box');
    const config = { url: `${peer.origin}/far` };
    await project.done('POST /servers', { name: 'far', transport: 'http', config });
    const session = await project.session();
    for (let round = 0; round < 3; round++) {
      await session.callText('echo', { text: String(round) });
      await session.call('failing');
      await session.callText('fine');
    }
    const all = await calls(project, 9);
    expect(all.map(({ created_at }) => created_at)).toEqual(
      all
        .map(({ created_at }) => created_at)
        .toSorted()
        .reverse(),
    );
    const tools = async (query: string) =>
      (await project.done<CallList>(`GET /calls?${query}`)).calls.map(({ tool }) => tool);
    expect(await tools('server=box')).toEqual(['echo', 'echo', 'echo']);
    expect(await tools('tool=fine')).toEqual(['fine', 'fine', 'fine']);
    expect(await tools('status=tool_error')).toEqual(['failing', 'failing', 'failing']);
    expect(await tools('server=far&status=ok&limit=2')).toEqual(['fine', 'fine']);
    expect(await tools('server=nobody')).toEqual([]);
    const [oldest] = all.slice(-1);
    expect(await tools(`until=${oldest!.created_at}`)).toEqual([]);
    expect(await tools(`since=${oldest!.created_at}`)).toHaveLength(9);
    expect(await tools('since=2100-01-01T00:00:00Z')).toEqual([]);

    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const page: CallList = await project.done<CallList>(`GET /calls?limit=4${query}`);
      seen.push(...page.calls.map(({ id }) => id));
      // New calls do not shift the pages.
      await session.callText('fine');
      cursor = page.next_cursor;
    }
    expect(seen).toEqual(all.map(({ id }) => id));

    for (const query of ['cursor=x', 'limit=0', 'limit=501', 'status=odd', 'since=yesterday', 'sever=box']) {
      const { status, body } = await project.ask(`GET /calls?${query}`);
      expect(status).toBe(400);
      expect(body.error?.details.problems).toMatchObject([{ path: expect.stringMatching(/^\w+$/) }]);
    }
  });

  it('[P9] are rows of kb.agent_run_tool_calls, without a run if the call has none', async () => {
    const project = await site.project({ record_payloads: true });
    await project.add('box');
    await (await project.session()).callText('echo', { text: 'hello' });
    const [call] = await calls(project, 1);
    const rows = await site.query('SELECT * FROM kb.agent_run_tool_calls WHERE project_id = $1', [
      project.id,
    ]);
    expect(rows).toMatchObject([
      {
        id: call!.id,
        run_id: null,
        message_id: null,
        step: null,
        client: 'raw 1',
        method: 'tools/call',
        server_name: 'box',
        replica: 1,
        tool_name: 'echo',
        input: { text: 'hello' },
        output: text('hello'),
        status: 'ok',
        duration_ms: call!.duration_ms,
        error_code: null,
        error: null,
      },
    ]);
  });

  it('[P9] are flushed when Switchboard stops, and expired ones are deleted when it starts', async () => {
    const [kept, short, forEver] = await Promise.all([
      site.project(),
      site.project({ retention_days: 2 }),
      site.project({ retention_days: null }),
    ]);
    await kept.add('box');
    const insert = (project: TestProject, days: number) =>
      site.query(
        `INSERT INTO kb.agent_run_tool_calls (project_id, method, tool_name, status, duration_ms, created_at)
         VALUES ($1, 'tools/call', $2, 'ok', 1, now() - make_interval(days => $3))`,
        [project.id, `of ${days} days ago`, days],
      );
    for (const project of [kept, short, forEver])
      for (const days of [1, 3, 29, 31]) await insert(project, days);
    const session = await kept.session();
    await session.callText('echo', { text: 'the last' });
    await site.restart();
    const toolsOf = async (project: TestProject) =>
      (await project.done<CallList>('GET /calls')).calls.map(({ tool }) => tool);
    const old = ['of 1 days ago', 'of 3 days ago', 'of 29 days ago', 'of 31 days ago'];
    // They are deleted in the background.
    while ((await toolsOf(short)).length > 1 || (await toolsOf(kept)).length > 4);
    expect(await toolsOf(kept)).toEqual(['echo', ...old.slice(0, 3)]);
    expect(await toolsOf(short)).toEqual(old.slice(0, 1));
    expect(await toolsOf(forEver)).toEqual(old);
  });
});

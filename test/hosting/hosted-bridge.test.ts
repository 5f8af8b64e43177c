import { describe, expect, it } from 'vitest';
import { connectHttp, textOf } from '../helpers/clients.ts';
import { serverOnce } from '../helpers/server-states.ts';
import { HostingSite, isReady, sharedHostingSite, sharedProcessSite } from './hosting-site.ts';

describe('the bridge to a server in a sandbox', () => {
  const open = sharedHostingSite();

  it('[H4, H7] carries calls one at a time for all callers, with the notifications in between', async ({
    skip,
  }) => {
    const site = await open({ skip });
    const { id } = await site.host({ name: 'solitary', image: await site.image('counts-requests') });
    await using connected = await connectHttp(`${site.site.baseUrl}/mcp/default`);
    const { client, notifications } = connected;
    const uri = 'resource://solitary/note://work';
    await client.subscribeResource({ uri });

    expect(await site.call(id, 'tools/list')).toMatchObject({
      status: 200,
      body: { result: { tools: [{ name: 'work' }, { name: 'most' }] } },
    });
    const texts = Array.from({ length: 8 }, (_, index) => `task ${index}`);
    const overHttp = texts.map((text) => site.tool(id, 'work', { text }));
    const overMcp = texts.map(async (text) => {
      const given = { name: 'work', arguments: { text: `${text} of a client` } };
      return textOf(await client.callTool(given));
    });
    expect(await Promise.all(overHttp)).toEqual(texts);
    expect(await Promise.all(overMcp)).toEqual(texts.map((text) => `${text} of a client`));
    expect(await site.tool(id, 'most')).toBe('1');

    const updates = await notifications.several(
      2,
      ({ method }) => method === 'notifications/resources/updated',
    );
    expect(updates.map(({ params }) => params?.uri)).toEqual([uri, uri]);
  });
});

describe.concurrent('the bridge', () => {
  const open = sharedProcessSite({ callTimeoutMs: 20_000 });

  it('[H4] returns the result unchanged', async () => {
    const site = await open();
    const { id } = await site.host(site.process('toolbox'));
    const params = { name: 'echo', arguments: { text: 'häßlich 🦜\n"' } };
    const { status, headers, body } = await site.call(id, 'tools/call', params);
    expect({ status, type: headers['content-type'], body }).toEqual({
      status: 200,
      type: expect.stringMatching('application/json'),
      body: { result: { content: [{ type: 'text', text: 'häßlich 🦜\n"' }] } },
    });
  });

  it('[H4] performs the handshake, and only once', async () => {
    const site = await open();
    const who = 'handshake';
    const { id } = await site.host(site.process('toolbox', site.site.witness.env(who)));
    await site.tool(id, 'echo', { text: 'hello' });
    expect(await site.call(id, 'initialize', {})).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_input' } },
    });
    await site.tool(id, 'echo', { text: 'hello again' });
    await site.site.witness.severalOf(who, 'initialize', 1);
    expect(site.site.witness.seenBy(who, 'initialize')).toHaveLength(1);
    await site.site.witness.severalOf(who, 'notifications/initialized', 1);
    expect(site.site.witness.seenBy(who, 'notifications/initialized')).toHaveLength(1);
  });

  it.for([
    { code: -32700, status: 502 },
    { code: -32601, status: 404 },
    { code: -32602, status: 400 },
    { code: -32603, status: 502 },
    { code: -32002, status: 404 },
    { code: -32042, status: 502 },
    { code: 17, status: 422 },
  ])(
    '[H5] turns the JSON-RPC error $code into HTTP $status with all of its fields',
    async ({ code, status }) => {
      const site = await open();
      refusing ??= site.host(site.process('returns-errors'));
      const { id } = await refusing;
      const rpc = { code, message: `no, and that is ${code}`, data: { why: ['so', 1.5, null] } };
      const answer = await site.call(id, 'tools/call', { name: 'refuse', arguments: rpc });
      expect({ status: answer.status, error: answer.body.error }).toEqual({
        status,
        error: { code: 'server_error', message: rpc.message, details: { rpc } },
      });
    },
  );
  let refusing: Promise<{ id: string }> | undefined;

  it('[H5] returns a tool failure as a result', async () => {
    const site = await open();
    const { id } = await site.host(site.process('returns-errors'));
    expect(await site.call(id, 'tools/call', { name: 'fail' })).toMatchObject({
      status: 200,
      body: { result: { isError: true, content: [{ type: 'text', text: 'that did not work' }] } },
    });
  });

  it('[H6] logs a timeout, leaves the server running, and drops the late response', async () => {
    const site = await open();
    const server = await site.host({
      name: 'belated',
      ...site.process('answers-on-next-call', site.site.witness.env('belated')),
    });
    const { id } = server;
    const { pid } = JSON.parse(await site.tool(id, 'whoami')) as { pid: number };
    const late = { name: 'later', arguments: { text: 'the first' } };
    const { status, body } = await site.call(id, 'tools/call', late, 300);
    expect({ status, code: body.error?.code }).toEqual({ status: 504, code: 'call_timeout' });
    expect(await site.log(id)).toContain(body.error!.message);
    expect(await site.site.warning(/belated.*did not respond|did not respond.*belated/)).toBe(
      body.error!.message,
    );

    // It answers the first call when the next one arrives, before that one.
    const next = JSON.parse(await site.tool(id, 'echo', { text: 'the next' })) as object;
    expect(next).toEqual({ text: 'the next', name: 'answers-on-next-call', pid });
    expect(await site.view(id)).toMatchObject({
      status: 'ready',
      provider_workspace_id: server.provider_workspace_id,
      restart_count: 0,
      last_crash: null,
    });
  });

  it('[H6] uses the configured timeout if the call sets none', async () => {
    await using site = await HostingSite.start({ settings: { callTimeoutMs: 200 } });
    const { id } = await site.host(site.process('hangs-in-call'));
    const { status, body } = await site.call(id, 'tools/call', { name: 'hang' });
    expect({ status, message: body.error?.message }).toEqual({
      status: 504,
      message: expect.stringMatching(/did not respond within \d+ ms \(setting hosting.callTimeoutMs\)/),
    });
    expect(await site.reaches(id, isReady)).toMatchObject({ restart_count: 0 });
  });

  it('[H6] counts the timeout from the request, even before the server speaks MCP', async () => {
    const site = await open();
    const { id } = await site.register({
      ...{ provider: 'process', command: 'sh', args: ['-c', 'exec cat > /dev/null'] },
    });
    const { status, body } = await site.call(id, 'tools/call', { name: 'echo' }, 300);
    expect({ status, message: body.error?.message }).toEqual({
      status: 504,
      message: expect.stringMatching(/was not available within \d+ ms/),
    });
    expect(await site.view(id)).toMatchObject({ status: 'starting', restart_count: 0 });
    await using hasty = await HostingSite.start({ settings: { callTimeoutMs: 300 } });
    const mute = await hasty.register(site.process('never-responds'));
    expect((await hasty.call(mute.id, 'ping')).body.error?.message).toMatch(
      /was not available within \d+ ms \(setting hosting.callTimeoutMs\)/,
    );
  });

  it('[H7] queues other calls during a long one, and serves them after it', async () => {
    const site = await open();
    const who = 'waiting';
    const { id, name } = await site.host(site.process('toolbox', site.site.witness.env(who)));
    const long = site.tool(id, 'wait');
    await site.site.witness.sees(who, 'waiting');
    const others = ['one', 'two', 'three'].map((text) => site.tool(id, 'echo', { text }));
    await serverOnce(site.site.switchboard, name, ({ queued }) => queued === others.length);
    // So far the server has received only this call.
    await site.site.witness.severalOf(who, 'tools/call', 1);
    expect(site.site.witness.seenBy(who, 'tools/call')).toHaveLength(1);
    site.site.witness.tell(who, 'go');
    expect(await long).toBe('waited');
    expect(await Promise.all(others)).toEqual(['one', 'two', 'three']);
  });
});

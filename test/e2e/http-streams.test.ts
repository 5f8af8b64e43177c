import { describe, expect, it } from 'vitest';
import { memoryOf } from '../helpers/processes.ts';
import { openExchange, RawSession, type RpcMessage } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

let switchboard: RunningSwitchboard;
let witness: Witness;

setUp(async (use) => {
  witness = use(await Witness.open());
  switchboard = use(
    await startSwitchboard({ box: fixtureServer('toolbox', witness.env('box')) }, { keepAliveMs: 100 }),
  );
  // The first discovery is announced too; later sessions see only their own events.
  const first = await RawSession.open(switchboard.url);
  const stream = await first.listen();
  await first.toolNames();
  await stream.message(isListChanged);
  await first.end();
});

const isAnswer = ({ result }: RpcMessage) => result !== undefined;
const isListChanged = ({ method }: RpcMessage) => method === 'notifications/tools/list_changed';
const isProgress = ({ method }: RpcMessage) => method === 'notifications/progress';

describe('the standing stream', () => {
  it('carries messages that belong to no request, and is kept alive', async () => {
    const session = await RawSession.open(switchboard.url);
    const stream = await session.listen();
    expect(stream.response.headers['content-type']).toBe('text/event-stream');
    await session.call('add', { name: 'extra' });
    await stream.message(isListChanged);
    expect(await session.toolNames()).toContain('extra');
    // A keep-alive comment has no fields.
    await stream.events.first((event) => Object.keys(event).length === 0);
    await session.end();
    await stream.ended;
  });

  it('resumes where it was cut', async () => {
    const session = await RawSession.open(switchboard.url);
    const stream = await session.listen();
    await session.call('add', { name: 'before' });
    await stream.message(isListChanged);
    const seen = stream.messages.length;
    const { lastEventId } = stream;
    await stream.cut();

    const other = await RawSession.open(switchboard.url);
    const otherStream = await other.listen();
    await other.call('add', { name: 'missed' });
    await otherStream.message(isListChanged);

    const resumed = await session.listen(lastEventId);
    await resumed.message(isListChanged);
    expect(seen).toBe(1);
    const ids = resumed.events.items.flatMap(({ id }) => id ?? []);
    expect(ids).not.toContain(lastEventId);
    expect(new Set(ids).size).toBe(ids.length);
    await session.end();
    await other.end();
  });

  it('delivers messages from before it was first opened', async () => {
    const session = await RawSession.open(switchboard.url);
    const witnessing = await RawSession.open(switchboard.url);
    const stream = await witnessing.listen();
    await witnessing.call('add', { name: 'early' });
    await stream.message(isListChanged);
    const late = await session.listen();
    await late.message(isListChanged);
    await session.end();
    await witnessing.end();
  });

  it('is replaced by a newer one', async () => {
    const session = await RawSession.open(switchboard.url);
    const first = await session.listen();
    const second = await session.listen();
    await first.ended;
    await session.call('add', { name: 'for-the-second' });
    await second.message(isListChanged);
    await session.end();
  });
});

describe('the stream of a request', () => {
  it('carries progress before the response, under the token of the client', async () => {
    const session = await RawSession.open(switchboard.url);
    const stream = await session.openCall('progress', { count: 3 }, 'mine');
    await stream.ended;
    expect(stream.messages).toMatchObject([
      ...[1, 2, 3].map((progress) => ({ params: { progressToken: 'mine', progress } })),
      { id: 1, result: { content: [{ text: 'done' }] } },
    ]);
    await session.end();
  });

  it.each(['2025-11-25', '2025-06-18'])(
    'can be resumed after its connection was cut (%s)',
    async (version) => {
      const session = await RawSession.open(switchboard.url, version);
      const order = `go-${version}`;
      const stream = await session.openCall('wait', { order }, 7);
      await stream.message(isProgress);
      await stream.cut();
      const resumed = await session.listen(stream.lastEventId);
      witness.tell('box', order);
      expect(await resumed.message(isAnswer)).toMatchObject({
        id: 1,
        result: { content: [{ text: 'waited' }] },
      });
      await resumed.ended;
      expect(resumed.messages).toHaveLength(1);
      await session.end();
    },
  );

  it('delivers a response that came while the client was disconnected', async () => {
    const session = await RawSession.open(switchboard.url);
    const stream = await session.openCall('wait', { order: 'unheard' }, 7);
    await stream.message(isProgress);
    await stream.cut();
    witness.tell('box', 'unheard');
    // The server answers in order, so the response to the cut call comes before this one.
    await session.callText('echo', { text: 'later' });
    const resumed = await session.listen(stream.lastEventId);
    await resumed.ended;
    expect(resumed.messages).toMatchObject([{ id: 1, result: { content: [{ text: 'waited' }] } }]);
    await session.end();
  });

  it('replays only its own events', async () => {
    const session = await RawSession.open(switchboard.url);
    const first = await session.openCall('progress', { count: 2 }, 'first');
    await first.ended;
    const second = await session.openCall('progress', { count: 2 }, 'second');
    await second.ended;
    const resumed = await session.listen(first.events.items.find(({ id }) => id !== undefined)!.id);
    await resumed.ended;
    expect(resumed.messages).toEqual(first.messages);
    await session.end();
  });

  it('of another session cannot be resumed', async () => {
    const owner = await RawSession.open(switchboard.url);
    const stream = await owner.openCall('progress', { count: 1 }, 'secret');
    await stream.ended;
    const other = await RawSession.open(switchboard.url);
    await expect(other.listen(stream.lastEventId)).rejects.toThrow('HTTP 400');
    await owner.end();
    await other.end();
  });

  it('starts when a response takes long, even without a message', async () => {
    const session = await RawSession.open(switchboard.url);
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'wait', arguments: { order: 'long' } },
    };
    // The head arrives although the response cannot be ready yet.
    const response = await openExchange(switchboard.url, { headers: session.headers(), body });
    expect(response.headers['content-type']).toBe('text/event-stream');
    witness.tell('box', 'long');
    let text = '';
    for await (const chunk of response) text += chunk;
    expect(text).toContain('"waited"');
    await session.end();
  });

  it('ends without a response when the client cancels, and the server is notified', async () => {
    const session = await RawSession.open(switchboard.url);
    const stream = await session.openCall('wait', { order: 'never' }, 1);
    await stream.message(isProgress);
    await session.notify('notifications/cancelled', { requestId: 1, reason: 'enough' });
    await stream.ended;
    expect(stream.messages.filter(isAnswer)).toEqual([]);
    const { params } = await witness.sees('box', 'notifications/cancelled');
    expect(params).toMatchObject({ reason: 'enough' });
    await session.end();
  });
});

describe('the events of a finished stream', () => {
  it('are dropped soon after delivery, and kept until then', async () => {
    await using brief = await startSwitchboard(
      { box: fixtureServer('toolbox', witness.env('brief')) },
      { keepAliveMs: 10, replayMs: 0 },
    );
    const session = await RawSession.open(brief.url);
    const unheard = await session.openCall('wait', { order: 'unheard' }, 7);
    await unheard.message(isProgress);
    await unheard.cut();
    // This response proves that Switchboard has seen the connection close.
    await session.toolNames();
    witness.tell('brief', 'unheard');
    const heard = await session.openCall('progress', { count: 3 }, 'heard');
    await heard.ended;
    const first = heard.events.items.find(({ id }) => id !== undefined)!.id;
    for (let left = 1; left > 0; ) {
      const resumed = await session.listen(first);
      await resumed.ended;
      left = resumed.messages.length;
    }
    const resumed = await session.listen(unheard.lastEventId);
    await resumed.ended;
    expect(resumed.messages).toMatchObject([{ id: 1, result: { content: [{ text: 'waited' }] } }]);
    await session.end();
  });
});

describe('events of a standing stream', () => {
  it('are dropped some time after delivery', async () => {
    await using brief = await startSwitchboard(
      { box: fixtureServer('toolbox', witness.env('standing')) },
      { keepAliveMs: 10, replayMs: 0 },
    );
    const session = await RawSession.open(brief.url);
    await session.toolNames();
    let standing = await session.listen();
    await session.callText('add', { name: 'more' });
    await standing.message(({ method }) => method === 'notifications/tools/list_changed');
    // Each request replays the stream from its start.
    for (let left = 1; left > 0; left = standing.messages.length) {
      standing = await session.listen('0_0');
      // Replayed events come before the next keep-alive comment.
      await session.toolNames();
    }
    await session.callText('add', { name: 'again' });
    await standing.message(({ method }) => method === 'notifications/tools/list_changed');
    await session.end();
  });
});

const FLOOD_MESSAGES = 8_000;
const FLOOD_BYTES = 64_000;

describe('a client that does not read', () => {
  it.skipIf(process.platform !== 'linux')('is disconnected before it fills the memory', async () => {
    await using flooding = await startSwitchboard({ box: fixtureServer('toolbox', witness.env('flooding')) });
    const { pid } = flooding.process;
    const session = await RawSession.open(flooding.url);
    await session.call('echo', { text: 'warm' });
    const before = memoryOf(pid!, 'VmHWM');
    const response = await openExchange(flooding.url, {
      headers: session.headers(),
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'flood', arguments: { messages: FLOOD_MESSAGES, bytes: FLOOD_BYTES } },
      },
    });
    response.pause();
    const closed = new Promise((resolve) => response.once('close', resolve));
    response.on('error', () => {});
    await witness.sees('flooding', 'flooded');
    // Half of it, so that garbage collection does not decide the result.
    expect(memoryOf(pid!, 'VmHWM') - before).toBeLessThan((FLOOD_MESSAGES * FLOOD_BYTES) / 2 ** 21);
    response.resume();
    await closed;
    expect(response.complete).toBe(false);
    expect(await session.callText('echo', { text: 'alive' })).toBe('alive');
  });
});

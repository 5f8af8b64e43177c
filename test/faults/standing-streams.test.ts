import { describe, expect, it } from 'vitest';
import { HttpBackend } from '../helpers/http-backend.ts';
import {
  answerJson,
  HttpPeer,
  openEvents,
  type PeerExchange,
  type Quirk,
  sessionGiver,
  writeEvent,
} from '../helpers/http-peer.ts';
import { Inbox } from '../helpers/inbox.ts';
import type { EventStream, RawSession } from '../helpers/raw-http.ts';
import { Scene } from './scene.ts';

describe.concurrent('a server over streamable HTTP', () => {
  it.each(['ends', 'cuts'])(
    'that %s its standing stream gets a new one, and its notifications still arrive',
    async (how) => {
      await using changing = await startChanging();
      const { tools, streams } = changing;
      await using scene = await Scene.start(changing.peer.configuration());
      const news = await scene.session.listen();
      const [first] = await streams.several(1, () => true);
      await scene.beside(async () => {
        if (how === 'ends') first!.end();
        else first!.destroy();
        expect(await scene.session.callText('changing__greet')).toBe('hello');
        await streams.several(2, () => true);
      });
      // The lists have been requested again, so later notifications arrive.
      await changing.peer.exchanges.several(2, isToolsList);
      tools.push(tool('welcome'));
      writeEvent(streams.items[1]!, {}, { method: 'notifications/tools/list_changed' });
      await untilListed('changing__welcome', scene.session, news);
      expect(await scene.view('changing')).toMatchObject({ state: 'ready', restarts: 0 });
    },
  );

  it('gets its lists requested again if its standing stream resumes without the missed events', async () => {
    await using changing = await startChanging();
    await using scene = await Scene.start(changing.peer.configuration());
    const news = await scene.session.listen();
    const [first] = await changing.streams.several(1, () => true);
    // The server announces a change while no stream is open.
    first!.end();
    changing.tools.push(tool('welcome'));
    await untilListed('changing__welcome', scene.session, news);
    expect(changing.streams.items).toHaveLength(2);
  });

  it('gets its lists requested again even if a list was pending when its standing stream resumed', async () => {
    const [before, after] = [[tool('greet')], [tool('greet'), tool('welcome')]];
    const answers: (() => void)[] = [];
    let streams = 0;
    await using peer = await HttpPeer.start({
      changing: ({ method, message, response }) => {
        if (method === 'GET') {
          openEvents(response);
          // The pending list dates from a time without a stream.
          if (++streams === 1) response.end();
          else for (const answer of answers) answer();
        } else if (message?.method === 'tools/list') {
          const isFirst = answers.length === 0;
          const answer = () =>
            answerJson(response, { id: message.id, result: { tools: isFirst ? before : after } });
          answers.push(answer);
          if (!isFirst) answer();
        } else {
          return false;
        }
        return true;
      },
    });
    await using scene = await Scene.start(peer.configuration());
    await untilListed('changing__welcome', scene.session, await scene.session.listen());
    expect(answers).toHaveLength(2);
  });

  it('gets no list requests if its standing stream resumes where it ended', async () => {
    await using changing = await startChanging();
    const { peer, streams } = changing;
    await using scene = await Scene.start(peer.configuration());
    const [first] = await streams.several(1, () => true);
    writeEvent(first!, { id: 'one', retry: '100' }, { method: 'notifications/nothing' });
    first!.end();
    const [, second] = await streams.several(2, () => true);
    // Requests after the stream resumed come before the response to the second ping.
    for (const id of ['are you there', 'are you still there']) {
      writeEvent(second!, {}, { id, method: 'ping' });
      await peer.sees('changing', ({ message }) => message?.id === id);
    }
    expect(peer.exchanges.items.filter(isToolsList)).toHaveLength(1);
    const gets = peer.seenBy('changing').filter(({ method }) => method === 'GET');
    expect(gets.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'one']);
    await scene.healthyAnswers();
  });

  it('that rejects its session with HTTP 400 gets a new one before any call', async () => {
    const sessions = sessionGiver();
    await using changing = await startChanging((exchange) => {
      if (sessions.gives(exchange)) return true;
      if (exchange.headers['mcp-session-id'] !== 'session 1' || !isRestarted) return false;
      exchange.response.writeHead(400).end('No valid session ID provided');
      return true;
    });
    let isRestarted = false;
    const { peer, tools, streams } = changing;
    await using scene = await Scene.start(peer.configuration());
    const news = await scene.session.listen();
    const [first] = await streams.several(1, () => true);
    isRestarted = true;
    first!.destroy();
    const [, second] = await streams.several(2, () => true);
    // Its lists have been requested, so later notifications arrive.
    await peer.exchanges.several(2, isToolsList);
    tools.push(tool('welcome'));
    writeEvent(second!, {}, { method: 'notifications/tools/list_changed' });
    await untilListed('changing__welcome', scene.session, news);
    const asked = peer.seenBy('changing').map(({ message }) => message?.method);
    expect(asked.filter((method) => method === 'ping' || method === 'tools/call')).toEqual(['ping']);
    expect(await scene.view('changing')).toMatchObject({ state: 'ready', restarts: 1 });
  });

  it.each([408, 429])(
    'that has no standing stream for now (HTTP %i) is asked for it again later',
    async (status) => {
      let refusals = 0;
      await using changing = await startChanging(({ method, response }) => {
        if (method !== 'GET' || refusals === 1) return false;
        refusals++;
        response.writeHead(status).end();
        return true;
      });
      await using scene = await Scene.start(changing.peer.configuration());
      const news = await scene.session.listen();
      const [stream] = await changing.streams.several(1, () => true);
      changing.tools.push(tool('welcome'));
      writeEvent(stream!, {}, { method: 'notifications/tools/list_changed' });
      await untilListed('changing__welcome', scene.session, news);
      expect(await scene.view('changing')).toMatchObject({ state: 'ready', restarts: 0 });
    },
  );

  it('that goes away is detected by its standing stream before any call, and found when it is back', async () => {
    await using backend = await HttpBackend.start('away');
    await using scene = await Scene.start(
      { away: { url: backend.url } },
      { backoffFirstMs: 40, backoffMaxMs: 40, breakerFailures: 1_000 },
    );
    await backend.goAway();
    // The first event is the loss, with an immediate retry; the next is the failed retry.
    await scene.reaches('away', 'backing_off');
    const { error, next_try } = await scene.reaches('away', 'backing_off', 2);
    expect(error).toMatch(/^Server "away" .*ECONNREFUSED/);
    expect(next_try).not.toBeNull();
    await backend.comeBack();
    await scene.reaches('away', 'ready', 2);
    expect(await scene.echoOf('away__echo', { text: 'back' })).toMatchObject({ text: 'back' });
  });
});

const isToolsList = ({ message }: PeerExchange) => message?.method === 'tools/list';
const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });

/** Lists after every notification, the first of which may come from the start, until the tool appears. */
async function untilListed(name: string, session: RawSession, news: EventStream): Promise<void> {
  for (;;) {
    const announced = news.events.next(({ message }) => {
      return message?.method === 'notifications/tools/list_changed';
    });
    if ((await session.toolNames()).includes(name)) return;
    await announced;
  }
}

/** A server whose standing streams and tools the test controls. */
async function startChanging(quirk: Quirk = () => false) {
  const tools = [tool('greet')];
  const streams = new Inbox<Parameters<typeof openEvents>[0]>();
  const peer = await HttpPeer.start({
    changing: (exchange) => {
      if (quirk(exchange)) return true;
      const { method, message, response } = exchange;
      if (method === 'GET') {
        openEvents(response);
        streams.add(response);
      } else if (message?.method === 'tools/list') {
        answerJson(response, { id: message.id, result: { tools } });
      } else {
        return false;
      }
      return true;
    },
  });
  return { peer, tools, streams, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() };
}

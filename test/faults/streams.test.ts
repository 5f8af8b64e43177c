import { describe, expect, it } from 'vitest';
import { HttpBackend } from '../helpers/http-backend.ts';
import { answerJson, HttpPeer, openEvents, type PeerExchange, writeEvent } from '../helpers/http-peer.ts';
import { Inbox } from '../helpers/inbox.ts';
import type { EventStream } from '../helpers/raw-http.ts';
import type { RawSession } from '../helpers/raw-session.ts';
import { errorIn, Scene } from './scene.ts';

describe.concurrent('a server over HTTP+SSE', () => {
  it('whose stream drops fails what is under way, and has another stream at once [P7]', async () => {
    await using backend = await HttpBackend.start('dropping', { transport: 'sse' });
    await using scene = await Scene.start({ dropping: { type: 'sse', url: backend.url } });
    const stuck = await scene.stuckCall('dropping', 'lost');
    await scene.beside(async () => {
      backend.dropStreams();
      expect(await errorIn(stuck)).toMatchObject({
        code: -32603,
        message: expect.stringMatching(
          /^Server "dropping": .*the call may have been carried out, and is not sent again/,
        ),
        data: { code: 'server_unavailable', server: 'dropping' },
      });
      const answer = await scene.echoOf('dropping__echo', { text: 'next' });
      expect(answer).toMatchObject({ text: 'next', name: 'dropping' });
    });
    expect([backend.executionsOf('lost'), backend.executionsOf('next')]).toEqual([1, 1]);
    expect(await scene.view('dropping')).toMatchObject({ state: 'ready', restarts: 1 });
  });

  it('that stays away refuses calls at once and says when the next try is [P7]', async () => {
    await using backend = await HttpBackend.start('away', { transport: 'sse' });
    await using scene = await Scene.start({ away: { type: 'sse', url: backend.url } });
    const stuck = await scene.stuckCall('away', 'lost');
    await backend.goAway();
    expect((await errorIn(stuck))?.message).toContain('Server "away"');
    // The first is that it was lost, and was looked for at once; now it waits for an hour.
    const { next_try } = await scene.reaches('away', 'backing_off', 2);
    const errors = await scene.beside(() =>
      Promise.all(['one', 'two'].map((text) => scene.errorOf('away__echo', { text }))),
    );
    for (const error of errors) {
      expect(error).toMatchObject({
        code: -32603,
        message: expect.stringMatching(/^Server "away" .*ECONNREFUSED.* \(next try in \d+ s\)$/),
        data: { code: 'server_unavailable', server: 'away', nextTry: next_try },
      });
    }
    expect(await scene.view('away')).toMatchObject({ state: 'backing_off', next_try });
    expect(await scene.session.toolNames()).toContain('away__echo');
  });

  it('is looked for again after growing waits, and used again when it is back [P7]', async () => {
    await using backend = await HttpBackend.start('away', { transport: 'sse' });
    await using scene = await Scene.start(
      { away: { type: 'sse', url: backend.url } },
      { backoffFirstMs: 40, breakerFailures: 100 },
    );
    await backend.goAway();
    await scene.beside(() => scene.reaches('away', 'backing_off', 5));
    await backend.comeBack();
    await scene.reaches('away', 'ready', 2);
    expect(await scene.echoOf('away__echo', { text: 'back' })).toMatchObject({ text: 'back' });

    const [lost, ...failed] = scene
      .changesTo('away', 'backing_off')
      .map(({ since, next_try }) => Date.parse(next_try!) - Date.parse(since));
    expect(lost).toBe(0);
    failed.forEach((wait, failures) => {
      expect(wait).toBeGreaterThanOrEqual((40 * 2 ** failures) / 2);
      expect(wait).toBeLessThanOrEqual(40 * 2 ** failures);
    });
  });
});

describe.concurrent('a server over streamable HTTP', () => {
  it('that drops the stream of an answer fails that call, and no other', async () => {
    await using backend = await HttpBackend.start('dropping', { answers: 'events' });
    await using scene = await Scene.start({ dropping: { url: backend.url } });
    const stuck = await scene.stuckCall('dropping', 'lost');
    await scene.beside(async () => {
      backend.dropStreams();
      expect(await errorIn(stuck)).toMatchObject({
        code: -32603,
        message: expect.stringMatching(
          /^Server "dropping": .*the call may have been carried out, and is not sent again/,
        ),
        data: { code: 'server_unavailable', server: 'dropping' },
      });
      const answer = await scene.echoOf('dropping__echo', { text: 'next' });
      expect(answer).toMatchObject({ text: 'next', name: 'dropping' });
    });
    expect([backend.executionsOf('lost'), backend.executionsOf('next')]).toEqual([1, 1]);
    expect(await scene.view('dropping')).toMatchObject({ state: 'ready', restarts: 0 });
  });

  it.each(['ends', 'cuts'])(
    'that %s its standing stream is listened to again, and its news still arrive',
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
      // What it may have said meanwhile has been asked for, so what follows is heard.
      await changing.peer.exchanges.several(2, isToolsList);
      tools.push(tool('welcome'));
      writeEvent(streams.items[1]!, {}, { method: 'notifications/tools/list_changed' });
      await untilListed('changing__welcome', scene.session, news);
      expect(await scene.view('changing')).toMatchObject({ state: 'ready', restarts: 0 });
    },
  );

  it('is asked again for its lists when its standing stream is back without what was said meanwhile', async () => {
    await using changing = await startChanging();
    await using scene = await Scene.start(changing.peer.configuration());
    const news = await scene.session.listen();
    const [first] = await changing.streams.several(1, () => true);
    // Nobody listens when the server has something to say.
    first!.end();
    changing.tools.push(tool('welcome'));
    await untilListed('changing__welcome', scene.session, news);
    expect(changing.streams.items).toHaveLength(2);
  });

  it('is asked again for its lists also where they were under way when its standing stream was back', async () => {
    const [before, after] = [[tool('greet')], [tool('greet'), tool('welcome')]];
    const answers: (() => void)[] = [];
    let streams = 0;
    await using peer = await HttpPeer.start({
      changing: ({ method, message, response }) => {
        if (method === 'GET') {
          openEvents(response);
          // The list that it was asked for first is that of a time when nobody listened.
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

  it('is not asked for its lists where its standing stream goes on from where it ended', async () => {
    await using changing = await startChanging();
    const { peer, streams } = changing;
    await using scene = await Scene.start(peer.configuration());
    const [first] = await streams.several(1, () => true);
    writeEvent(first!, { id: 'one', retry: '100' }, { method: 'notifications/nothing' });
    first!.end();
    const [, second] = await streams.several(2, () => true);
    // Whatever is asked when the stream is back is asked before the second of these is answered.
    for (const id of ['are you there', 'are you still there']) {
      writeEvent(second!, {}, { id, method: 'ping' });
      await peer.sees('changing', ({ message }) => message?.id === id);
    }
    expect(peer.exchanges.items.filter(isToolsList)).toHaveLength(1);
    const gets = peer.seenBy('changing').filter(({ method }) => method === 'GET');
    expect(gets.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'one']);
    await scene.healthyAnswers();
  });

  it('that is gone is seen to be gone by its standing stream, before any call, and found when it is back', async () => {
    await using backend = await HttpBackend.start('away');
    await using scene = await Scene.start(
      { away: { url: backend.url } },
      { backoffFirstMs: 40, backoffMaxMs: 40, breakerFailures: 1_000 },
    );
    await backend.goAway();
    // The first is that it was lost, and is looked for at once; the next that it was not found.
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

/** Lists with every announcement, the first of which may come from the start, until the tool is there. */
async function untilListed(name: string, session: RawSession, news: EventStream): Promise<void> {
  for (;;) {
    const announced = news.events.next(({ message }) => {
      return message?.method === 'notifications/tools/list_changed';
    });
    if ((await session.toolNames()).includes(name)) return;
    await announced;
  }
}

/** A server whose standing streams and tools are in the hands of the test. */
async function startChanging() {
  const tools = [tool('greet')];
  const streams = new Inbox<Parameters<typeof openEvents>[0]>();
  const peer = await HttpPeer.start({
    changing: ({ method, message, response }) => {
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

import { describe, expect, it } from 'vitest';
import { runCli } from '../helpers/cli.ts';
import { loaded, numbered, startCounting, workAll } from '../helpers/counting.ts';
import { HttpBackend } from '../helpers/http-backend.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { serverOnce } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';

describe.concurrent('a server with a concurrency limit', () => {
  it('gets no more calls than that; the others are queued, and the queue is visible [A14]', async () => {
    await using started = await startCounting({ concurrency: 3 }, {}, { other: fixtureServer('toolbox') });
    const { witness, switchboard } = started;
    const [ada, grace] = [await started.open(), await started.open()];
    const texts = [numbered('ada', 10), numbered('grace', 10)] as const;
    const answers = [...workAll(ada, texts[0]), ...workAll(grace, texts[1])];
    const { longest_wait_ms, replicas } = await started.loaded(3, 17);
    expect(longest_wait_ms).toBeGreaterThanOrEqual(0);
    expect(replicas).toMatchObject([{ in_flight: 3, queued: 17 }]);
    const later = await serverOnce(switchboard, 'box', (server) => server.longest_wait_ms > longest_wait_ms);
    expect(later).toMatchObject({ in_flight: 3, queued: 17 });
    const { stdout } = await runCli(['ls', '--url', switchboard.baseUrl]);
    expect(stdout).toMatch(/^box +ready +stdio +4 tools +3 running, 17 waiting$/m);
    // Other servers are not delayed.
    expect(await grace.callText('other__echo', { text: 'at once' })).toBe('at once');

    witness.tell('box', 'finish all');
    expect(await Promise.all(answers)).toEqual(texts.flat());
    expect(new Set(await started.worked(20))).toEqual(new Set(texts.flat()));
    expect(started.mostAtOnce()).toBe(3);
    expect(await started.loaded(0, 0)).toMatchObject({ longest_wait_ms: 0 });
  });

  it('has the same limit over HTTP [A14]', async () => {
    const held = Promise.withResolvers<void>();
    let [atOnce, mostAtOnce] = [0, 0];
    const hold = async () => {
      mostAtOnce = Math.max(mostAtOnce, ++atOnce);
      await held.promise;
      atOnce--;
      return { content: [] };
    };
    await using backend = await HttpBackend.start('box', { tools: { hold } });
    await using switchboard = await startSwitchboard({ box: { url: backend.url, concurrency: 2 } });
    const session = await RawSession.open(switchboard.url);
    const calls = Array.from({ length: 6 }, () => session.call('hold'));
    await loaded(switchboard, 2, 4);
    held.resolve();
    for (const { result } of await Promise.all(calls)) expect(result).toEqual({ content: [] });
    expect(mostAtOnce).toBe(2);
  });

  it('has the limit in each of its replicas', async () => {
    await using started = await startCounting({ concurrency: 2, replicas: 2 });
    const session = await started.open();
    const answers = Promise.allSettled(workAll(session, numbered('call', 7)));
    const { replicas } = await started.loaded(4, 3);
    expect(replicas.map(({ in_flight }) => in_flight)).toEqual([2, 2]);
    expect(replicas.map(({ queued }) => queued).toSorted()).toEqual([1, 2]);
    await started.worked(4);
    expect(new Set(started.witness.seenBy('box', 'work').map(({ pid }) => pid)).size).toBe(2);
    expect(started.mostAtOnce()).toBe(2);
    await session.end();
    await answers;
    await started.loaded(0, 0);
  });

  it('has the limit for each client with isolation', async () => {
    await using started = await startCounting({ concurrency: 1, isolation: 'session' });
    const [ada, grace] = [await started.open(), await started.open()];
    const answers = Promise.allSettled([
      ...workAll(ada, ['ada1', 'ada2', 'ada3']),
      ...workAll(grace, ['grace1']),
    ]);
    await started.loaded(2, 2);
    expect((await started.worked(2)).toSorted()).toEqual(['ada1', 'grace1']);
    expect(new Set(started.witness.seenBy('box', 'work').map(({ pid }) => pid)).size).toBe(2);
    await ada.end();
    await started.loaded(1, 0);
    await grace.end();
    await answers;
    expect(started.mostAtOnce()).toBe(1);
  });

  it('follows an edit of the limit at once, without a restart', async () => {
    await using started = await startCounting({ concurrency: 1 });
    const session = await started.open();
    const answers = await started.lineUp(session, numbered('call', 5));
    await started.loaded(1, 4);
    await started.reconfigure({ concurrency: 3 });
    await started.loaded(3, 2);
    await started.worked(3);

    await started.reconfigure({ concurrency: 1 });
    await started.switchboard.event(
      (event) =>
        started.switchboard.events.filter(({ event: name }) => name === 'configuration').indexOf(event) === 1,
    );
    started.finish('call1');
    started.finish('call2');
    await Promise.all(answers.slice(0, 2));
    // Two finished and none started: the new limit is below the number in flight.
    await started.loaded(1, 2);
    started.finish('call3');
    expect(await started.worked(4)).toEqual(numbered('call', 4));
    started.witness.tell('box', 'finish all');
    expect(await Promise.all(answers)).toEqual(numbered('call', 5));
    await started.witness.severalOf('box', 'start', 1);
    expect(started.witness.seenBy('box', 'start')).toHaveLength(1);
  });
});

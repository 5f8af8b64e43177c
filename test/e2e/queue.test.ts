import { describe, expect, it } from 'vitest';
import { connectSse } from '../helpers/clients.ts';
import { numbered, startCounting, work, workAll } from '../helpers/counting.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { serverOf, serverOnce } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

describe.concurrent('queued calls', () => {
  it('of a client with one do not wait behind the 200 of another [A14]', async () => {
    await using started = await startCounting({ concurrency: 1 });
    const [busy, modest] = [await started.open(), await started.open()];
    const many = numbered('busy', 200);
    const answers = workAll(busy, many);
    await started.loaded(1, 199);
    const one = work(modest, 'modest');
    await started.loaded(1, 200);
    started.witness.tell('box', 'finish all');
    expect(await one).toBe('modest');
    expect(await Promise.all(answers)).toEqual(many);
    expect((await started.worked(201)).indexOf('modest')).toBeLessThanOrEqual(2);
  });

  it('are served in order of arrival, with the clients in rotation [A14]', async () => {
    await using started = await startCounting({ concurrency: 1 });
    const names = ['a', 'b', 'c'];
    const sessions = await Promise.all(names.map(() => started.open()));
    const answers: Promise<string>[] = [];
    for (const [index, session] of sessions.entries()) {
      answers.push(...(await started.lineUp(session, numbered(names[index]!, 3))));
    }
    started.witness.tell('box', 'finish all');
    await Promise.all(answers);
    expect(await started.worked(9)).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'c2', 'b3', 'c3']);
  });

  it('are limited to queueLimit: more are rejected at once, and can be retried [A14]', async () => {
    await using started = await startCounting({ concurrency: 1 }, { queueLimit: 2 });
    const session = await started.open();
    const answers = workAll(session, ['first']);
    await started.loaded(1, 0);
    answers.push(...workAll(session, ['second', 'third']));
    await started.loaded(1, 2);
    const { error } = await session.call('work', { text: 'too much' });
    expect(error).toEqual({
      code: -32603,
      message: 'Server "box" is busy: its queue of calls is full (setting queueLimit).',
      data: { code: 'server_busy', server: 'box' },
    });
    started.finish('first');
    await started.loaded(1, 1);
    answers.push(work(session, 'again'));
    await started.loaded(1, 2);
    started.witness.tell('box', 'finish all');
    expect(await Promise.all(answers)).toEqual(['first', 'second', 'third', 'again']);
    expect(started.witness.seenBy('box', 'work').map(({ text }) => text)).not.toContain('too much');
  });

  it('of a client that fills the queue yield to one with few, and its last one is rejected [A14]', async () => {
    await using started = await startCounting({ concurrency: 1 }, { queueLimit: 3 });
    const [busy, modest] = [await started.open(), await started.open()];
    const answers = await started.lineUp(busy, numbered('busy', 3));
    const last = busy.call('work', { text: 'busy4' });
    await started.loaded(1, 3);
    answers.push(work(modest, 'modest'));
    expect((await last).error).toMatchObject({ code: -32603, data: { code: 'server_busy', server: 'box' } });
    // The client with the longer queue is rejected next, too.
    const { error } = await busy.call('work', { text: 'busy5' });
    expect(error).toMatchObject({ data: { code: 'server_busy' } });
    await started.loaded(1, 3);
    started.witness.tell('box', 'finish all');
    expect(await Promise.all(answers)).toEqual(['busy1', 'busy2', 'busy3', 'modest']);
    expect(await started.worked(4)).toEqual(['busy1', 'busy2', 'modest', 'busy3']);
  });

  it('fill every replica before one is rejected', async () => {
    await using started = await startCounting({ concurrency: 1, replicas: 2 }, { queueLimit: 1 });
    const session = await started.open();
    const answers = Promise.allSettled(workAll(session, ['1', '2']));
    await started.loaded(2, 0);
    const queued = Promise.allSettled(workAll(session, ['3', '4']));
    await started.loaded(2, 2);
    const { error } = await session.call('work', { text: '5' });
    expect(error).toMatchObject({ data: { code: 'server_busy' } });
    await session.end();
    await Promise.all([answers, queued]);
  });

  it('leave the queue when their client cancels them, and are never sent', async () => {
    await using started = await startCounting({ concurrency: 1 });
    const [ada, grace] = [await started.open(), await started.open()];
    const running = work(ada, 'running');
    await started.loaded(1, 0);
    const cancelled = grace.post({
      jsonrpc: '2.0',
      id: 'cancel me',
      method: 'tools/call',
      params: { name: 'work', arguments: { text: 'cancelled' } },
    });
    await started.loaded(1, 1);
    const kept = work(grace, 'kept');
    await started.loaded(1, 2);
    await grace.notify('notifications/cancelled', { requestId: 'cancel me' });
    await started.loaded(1, 1);
    expect((await cancelled).text).not.toContain('result');
    started.witness.tell('box', 'finish all');
    expect(await Promise.all([running, kept])).toEqual(['running', 'kept']);
    expect(await started.worked(2)).toEqual(['running', 'kept']);
    // It was never sent, so no cancellation is sent either.
    expect(started.witness.seenBy('box', 'cancelled')).toEqual([]);
  });

  it('leave the queue when their client disconnects, and are never sent', async () => {
    await using started = await startCounting({ concurrency: 1 });
    const [ada, grace] = [await started.open(), await started.open()];
    const running = work(ada, 'running');
    await started.loaded(1, 0);
    const ofGrace = Promise.allSettled(workAll(grace, ['ended']));
    const overSse = await connectSse(`${started.switchboard.baseUrl}/sse`);
    const lost = overSse.client.callTool({ name: 'work', arguments: { text: 'lost' } }).catch(() => {});
    await started.loaded(1, 2);
    await overSse[Symbol.asyncDispose]();
    await lost;
    await started.loaded(1, 1);
    await grace.end();
    await ofGrace;
    await started.loaded(1, 0);
    started.witness.tell('box', 'finish all');
    await running;
    expect(await work(ada, 'last')).toBe('last');
    expect(await started.worked(2)).toEqual(['running', 'last']);
  });

  it('are not sent if their client disconnects during the call before them', async () => {
    await using started = await startCounting({ concurrency: 1 });
    const session = await started.open();
    const answers = Promise.allSettled(await started.lineUp(session, ['running', 'next', 'last']));
    await session.end();
    await answers;
    await started.loaded(0, 0);
    const other = await started.open();
    const answer = work(other, 'of another');
    expect(await started.worked(2)).toEqual(['running', 'of another']);
    started.finish('of another');
    await answer;
  });

  it('during the start of a server are limited to queueLimit, and visible [A14]', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(
      {
        late: { ...fixtureServer('delays-handshake', witness.env('late')), startup: 'parallel' },
      },
      { concurrency: 1, queueLimit: 2, connectTimeoutMs: 3_600_000 },
    );
    const { pid } = await witness.sees('late', 'initialize');
    witness.tell('late', 'answer');
    await switchboard.event(({ name, state }) => name === 'late' && state === 'ready');
    process.kill(pid, 'SIGKILL');
    await witness.severalOf('late', 'initialize', 2);

    const session = await RawSession.open(switchboard.url);
    const held = Array.from({ length: 3 }, () => session.callText('late_tool'));
    const isFull = { state: 'starting', in_flight: 1, queued: 2 };
    await serverOnce(switchboard, 'late', ({ in_flight, queued }) => in_flight + queued === 3);
    expect(await serverOf(switchboard, 'late')).toMatchObject(isFull);
    const { error } = await session.call('late_tool');
    expect(error).toMatchObject({ code: -32603, data: { code: 'server_busy', server: 'late' } });
    expect(await serverOf(switchboard, 'late')).toMatchObject(isFull);
    witness.tell('late', 'answer');
    expect(new Set(await Promise.all(held))).toEqual(new Set(['better late than never']));
    expect(await witness.severalOf('late', 'tools/call', 3)).toHaveLength(3);
  });

  it('continue when the server restarts after it died in the call before them', async () => {
    await using started = await startCounting({ concurrency: 1 });
    const session = await started.open();
    const running = session.call('work', { text: 'running' });
    await started.loaded(1, 0);
    const waiting = await started.lineUp(session, ['next', 'last']);
    const { pid } = await started.witness.sees('box', 'work');
    process.kill(pid, 'SIGKILL');
    expect((await running).error).toMatchObject({
      message: expect.stringMatching(/^Server "box".*SIGKILL/),
      data: { code: 'server_unavailable', server: 'box' },
    });
    const next = await started.witness.sees('box', 'work', ({ text }) => text === 'next');
    expect(next.pid).not.toBe(pid);
    started.witness.tell('box', 'finish all');
    expect(await Promise.all(waiting)).toEqual(['next', 'last']);
    expect(await started.worked(3)).toEqual(['running', 'next', 'last']);
    expect(started.mostAtOnce()).toBe(1);
  });
});

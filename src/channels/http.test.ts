import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { HttpPeer, openEvents, type PeerExchange, writeEvent } from '../../test/helpers/http-peer.ts';
import type { Receiver } from './channel.ts';
import { HttpChannel } from './http.ts';
import { SseChannel } from './sse.ts';

const SECOND = 1_000;

const deaf: Receiver = {
  onMessage() {},
  onRequestError() {},
  onRequestPaused() {},
  onMissed() {},
  onStale() {},
  onClosed() {},
  log() {},
};

/** A channel to a server that responds to every request with a stream, and the simulated times of the requests. */
async function open(end: (response: PeerExchange['response']) => void) {
  const times: number[] = [];
  const peer = await HttpPeer.start({
    hasty: ({ response }) => {
      times.push(Date.now());
      openEvents(response);
      end(response);
      return true;
    },
  });
  const channel = new HttpChannel({ url: `${peer.origin}/hasty`, headers: {} }, 1_000_000, deaf);
  return {
    channel,
    /** The pauses between requests. One turn of the event loop is one millisecond. */
    async pausesOf(requests: number): Promise<number[]> {
      while (times.length < requests) {
        await turn();
        vi.advanceTimersByTime(1);
      }
      return times.slice(1, requests).map((time, index) => time - times[index]!);
    },
    async [Symbol.asyncDispose]() {
      await channel.close();
      await peer[Symbol.asyncDispose]();
    },
  };
}

describe('a server that asks for immediate stream reconnects', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: 0 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('has its standing stream requested at most ten times a second', async () => {
    await using opened = await open((response) => {
      writeEvent(response, { retry: '0' }, { method: 'notifications/nothing' });
      response.end();
    });
    opened.channel.ready('2025-11-25');
    for (const pause of await opened.pausesOf(5)) expect(pause).toBeGreaterThanOrEqual(100);
  });

  it('is asked less and less often if its stream stays empty', async () => {
    await using opened = await open((response) => response.end('retry: 0\n\n'));
    opened.channel.ready('2025-11-25');
    const [first, second, third] = await opened.pausesOf(4);
    expect(first).toBeGreaterThanOrEqual(100);
    expect(second).toBeGreaterThanOrEqual(2 * SECOND);
    expect(third).toBeGreaterThanOrEqual(4 * SECOND);
  });

  it('is asked for the rest of a response at most ten times a second', async () => {
    await using opened = await open((response) => {
      writeEvent(response, { id: 'begun', retry: '0' });
      response.end();
    });
    opened.channel.send([Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call"}')], 1);
    for (const pause of await opened.pausesOf(5)) expect(pause).toBeGreaterThanOrEqual(100);
  });
});

describe('a message that is not a request', () => {
  it('releases its connection if the server never responds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await using peer = await HttpPeer.start({ silent: () => true });
    const channel = new HttpChannel({ url: `${peer.origin}/silent`, headers: {} }, 1_000_000, deaf);
    channel.send([Buffer.from('{"jsonrpc":"2.0","method":"notifications/cancelled"}')]);
    const { response } = await peer.sees('silent', () => true);
    const closed = once(response, 'close');
    vi.advanceTimersByTime(30 * SECOND);
    await closed;
    await channel.close();
  });

  it.each([HttpChannel, SseChannel])('has a bounded queue if the server reads nothing (%o)', async (Kind) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await using peer = await HttpPeer.start({
      busy: ({ method, response }) => {
        if (method !== 'GET') return true;
        openEvents(response);
        response.write('event: endpoint\ndata: /busy\n\n');
        return true;
      },
    });
    const channel = new Kind({ url: `${peer.origin}/busy`, headers: {} }, 1_000_000, deaf);
    for (let id = 0; id < 12_000; id++)
      channel.send([Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{}}`)]);
    await peer.sees('busy', ({ method }) => method === 'POST');
    // Each queued message has a timeout; those that already have a connection are not queued.
    expect(vi.getTimerCount()).toBeGreaterThanOrEqual(10_000);
    expect(vi.getTimerCount()).toBeLessThan(11_000);
    await channel.close();
  });
});

it.each([HttpChannel, SseChannel])(
  'a stream of very many small events yields to other work (%o)',
  async (Kind) => {
    const COUNT = 100_000;
    let [heard, now, most] = [0, 0, 0];
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    await using peer = await HttpPeer.start({
      flood: ({ method, response }) => {
        if (method !== 'GET') return false;
        openEvents(response);
        response.write('data:{}\n\n'.repeat(COUNT));
        return true;
      },
    });
    const message = () => {
      now++;
      if (++heard === COUNT) end();
    };
    const channel = new Kind({ url: `${peer.origin}/flood`, headers: {} }, 1_000_000, {
      ...deaf,
      onMessage: message,
    });
    channel.ready('2025-06-18');
    const count = () => {
      most = Math.max(most, now);
      now = 0;
      counter = setImmediate(count);
    };
    let counter = setImmediate(count);
    await over;
    clearImmediate(counter);
    // The contents of one read, plus what was left before it.
    expect(most).toBeLessThan((64 * 1024) / 'data:{}\n\n'.length + 500);
    await channel.close();
  },
);

import { expect, it } from 'vitest';
import { turnsDuring } from '../../test/helpers/turns.ts';
import type { Channel } from '../channels/channel.ts';
import { SwitchboardError } from '../errors.ts';
import { LARGE_BYTES } from '../protocol/large-walk.ts';
import type { Message } from '../protocol/message.ts';
import { InboundQueue } from './inbound.ts';
import { sendRawRequest } from './own-requests.ts';
import type { UpstreamEvents } from './request.ts';
import { Upstream } from './upstream.ts';

const silent: Channel = {
  isStreamable: false,
  send() {},
  settle() {},
  abandon() {},
  ready() {},
  close: async () => {},
};
const gone = new SwitchboardError('server_unavailable', 'gone');

/** A connection of which all is noted that comes out of it. */
function connect() {
  const heard: string[] = [];
  let heardLast = () => {};
  const last = new Promise<void>((resolve) => {
    heardLast = resolve;
  });
  const events: UpstreamEvents = {
    notificationReceived: ({ method }: Message) => heard.push(method),
    requestReceived: ({ method }: Message) => heard.push(method),
    missed: () => heard.push('missed'),
    stale: () => heard.push('stale'),
    closed: () => {
      heard.push('closed');
      heardLast();
    },
    log: (line) => heard.push(line),
    redacted: (error) => error,
  };
  const upstream = new Upstream(events, () => silent);
  const ask = () =>
    sendRawRequest(upstream, 'tools/call').then(
      () => heard.push('answered'),
      () => heard.push('failed'),
    );
  return { upstream, heard, last, ask };
}

const small = (method: string) => [Buffer.from(`{"jsonrpc":"2.0","method":"${method}","params":{}}`)];
const values = `[${'1,'.repeat(LARGE_BYTES / 2)}1]`;

it('a large message lets others have their turn, and nothing overtakes it', async () => {
  const { upstream, heard, last } = connect();
  upstream.onMessage([Buffer.from(`{"jsonrpc":"2.0","method":"large","params":{"x":${values}}}`)]);
  upstream.onMessage(small('second'));
  upstream.onMessage([Buffer.from(`{"jsonrpc":"2.0","id":9,"method":"third","params":{"x":${values}}}`)]);
  upstream.onMissed();
  upstream.onMessage(small('fourth'));
  upstream.onClosed(gone);
  expect(heard).toEqual([]);
  expect(upstream.isGone).toBe(true);
  expect(await turnsDuring(last)).toBeGreaterThanOrEqual(24);
  expect(heard).toEqual(['large', 'second', 'third', 'missed', 'fourth', 'closed']);
});

it('a large answer whose id stands in its middle is read before it is said that none came', async () => {
  const { upstream, heard, last, ask } = connect();
  const asked = ask();
  upstream.onMessage([Buffer.from(`{"jsonrpc":"2.0","x":0,"result":{"x":${values}},"id":1,"y":0}`)], 1);
  upstream.onRequestError(1, gone, true);
  upstream.onClosed(gone);
  await Promise.all([asked, last]);
  expect(heard).toEqual(['answered', 'closed']);
});

it('a large batch of a server is refused, and its request fails', async () => {
  const { upstream, heard, ask } = connect();
  const asked = ask();
  upstream.onMessage([Buffer.from(`[{"jsonrpc":"2.0","result":{"x":${values}},"id":1}]`)], 1);
  await asked;
  expect(heard).toEqual([expect.stringContaining('A batch has'), 'failed']);
});

it('what is closed meanwhile hears no more', async () => {
  const { upstream, heard } = connect();
  upstream.onMessage([Buffer.from(`{"jsonrpc":"2.0","method":"large","params":{"x":${values}}}`)]);
  upstream.onMessage(small('second'));
  await upstream.close();
  const other = connect();
  other.upstream.onMessage([Buffer.from(`{"jsonrpc":"2.0","method":"large","params":{"x":${values}}}`)]);
  other.upstream.onClosed(gone);
  await other.last;
  expect(heard).toEqual([]);
});

it('nobody else has a turn while too much waits', async () => {
  const inbound = new InboundQueue(() => {});
  const order: number[] = [];
  const done = new Promise<void>((resolve) => {
    inbound.handle(0, async () => {
      for (let slice = 0; slice < 100; slice++) await inbound.rest();
    });
    inbound.handle(65 * 1024 * 1024, () => void order.push(1));
    inbound.handle(0, () => {
      order.push(2);
      resolve();
    });
  });
  expect(await turnsDuring(done)).toBeLessThan(5);
  expect(order).toEqual([1, 2]);
});

it('one that fails keeps none behind it waiting', async () => {
  const errors: unknown[] = [];
  const inbound = new InboundQueue((error) => errors.push(error));
  const fail = (what: string) => {
    throw new Error(what);
  };
  const done = new Promise<string>((resolve) => {
    inbound.handle(0, async () => fail('large'));
    inbound.handle(0, () => fail('small'));
    inbound.handle(0, () => resolve('dealt with'));
  });
  expect(await done).toBe('dealt with');
  expect(errors.map(String)).toEqual(['Error: large', 'Error: small']);
  await new Promise(setImmediate);
  expect(inbound.isBusy).toBe(false);
});

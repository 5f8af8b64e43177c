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

/** A connection that notes all its events. */
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

it('yields to other work during a large message, and keeps the order', async () => {
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

it('reads a large response with its id in the middle before it reports a missing response', async () => {
  const { upstream, heard, last, ask } = connect();
  const asked = ask();
  upstream.onMessage([Buffer.from(`{"jsonrpc":"2.0","x":0,"result":{"x":${values}},"id":1,"y":0}`)], 1);
  upstream.onRequestError(1, gone, true);
  upstream.onClosed(gone);
  await Promise.all([asked, last]);
  expect(heard).toEqual(['answered', 'closed']);
});

it('rejects a large batch of a server, and fails its request', async () => {
  const { upstream, heard, ask } = connect();
  const asked = ask();
  upstream.onMessage([Buffer.from(`[{"jsonrpc":"2.0","result":{"x":${values}},"id":1}]`)], 1);
  await asked;
  expect(heard).toEqual([expect.stringContaining('A batch may have'), 'failed']);
});

it('delivers nothing after it is closed', async () => {
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

it('does not yield while too much is queued', async () => {
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

it('continues with the next message after a failure', async () => {
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

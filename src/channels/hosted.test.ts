import { PassThrough } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import { join } from '../protocol/jsonrpc.ts';
import type { Receiver } from './channel.ts';
import { HostedChannel } from './hosted.ts';

const deaf: Receiver = {
  ...{
    onMessage() {},
    onRequestError() {},
    onClosed() {},
    log() {},
    onRequestPaused() {},
    onMissed() {},
    onStale() {},
  },
};

/** A channel to streams of which the test has the other ends. */
function attached(maxBytes = 10_000) {
  const input = new PassThrough();
  const output = new PassThrough();
  let end = (_error: SwitchboardError) => {};
  const ended = new Promise<SwitchboardError>((resolve) => {
    end = resolve;
  });
  const events: unknown[] = [];
  const channel = new HostedChannel({ kind: 'stdio', input, output, ended }, maxBytes, {
    onMessage: (chunks) => events.push(join(chunks).toString()),
    onRequestError: (request, { code }, sent) => events.push([request, code, sent]),
    onClosed: ({ message }) => events.push(`closed: ${message}`),
    log: (line) => events.push(`log: ${line}`),
    onRequestPaused() {},
    onMissed() {},
    onStale() {},
  });
  const written = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return ((input.read() as Buffer | null)?.toString() ?? '').split('\n').filter((line) => line !== '');
  };
  return { channel, output, end, events, written };
}

const message = (text: string) => [Buffer.from(JSON.stringify(text))];

it('writes one request at a time, in the order in which they came, and everything else at once', async () => {
  const { channel, written } = attached();
  for (const request of [1, 2, 3, 4]) channel.send(message(`request ${request}`), request);
  channel.send(message('notification'));
  expect(await written()).toEqual(['"request 1"', '"notification"']);
  channel.settle(1);
  expect(await written()).toEqual(['"request 2"']);
  // Nobody waits for these two: one is not written at all, and the next need not wait for the other.
  channel.abandon(3);
  channel.abandon(2);
  expect(await written()).toEqual(['"request 4"']);
  channel.settle(2);
  channel.settle(4);
  channel.send(message('request 5'), 5);
  expect(await written()).toEqual(['"request 5"']);
});

it('goes on with the next one where one does not fit into what the server has not read', async () => {
  const { channel, events, written } = attached(100);
  channel.send(message('x'.repeat(120)));
  channel.send(message('y'.repeat(90)), 1);
  expect(events).toEqual([[1, 'server_unavailable', false]]);
  await written();
  channel.send(message('z'), 2);
  expect(await written()).toEqual(['"z"']);
});

it('counts from where nobody else has counted, each time', () => {
  const firsts = Array.from({ length: 100 }, () => attached().channel.firstRequest);
  expect(new Set(firsts).size).toBe(100);
  expect(firsts.every((first) => Number.isSafeInteger(first) && first > 2 ** 31)).toBe(true);
});

it('reads messages until it is closed, and leaves the streams to the next one', async () => {
  const { channel, output, events } = attached();
  output.write('{"a":1}\nwhat is this\n{"b":');
  output.write('2}\n');
  await new Promise((resolve) => setImmediate(resolve));
  expect(events).toEqual(['{"a":1}', 'log: stdout: not a message, skipped: what is this', '{"b":2}']);
  await channel.close();
  output.write('{"c":3}\n');
  await new Promise((resolve) => setImmediate(resolve));
  expect(events).toHaveLength(3);
  expect(output.destroyed).toBe(false);
});

it('tells why the server is gone, once', async () => {
  const { channel, events, end } = attached();
  end(new SwitchboardError('server_unavailable', 'It exited with code 1.'));
  await new Promise((resolve) => setImmediate(resolve));
  channel.send(message('late'), 1);
  expect(events).toEqual(['closed: It exited with code 1.']);
});

it('is kept by nobody when it is closed, while the server runs on', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const server = { input: new PassThrough(), output: new PassThrough(), ended: new Promise<never>(() => {}) };
  const attach = async () => {
    const channel = new HostedChannel({ kind: 'stdio', ...server }, 100, deaf);
    await channel.close();
    return new WeakRef(channel);
  };
  const gone = await attach();
  const isGone = () => {
    collect();
    return gone.deref() === undefined;
  };
  await expect.poll(isGone).toBe(true);
});

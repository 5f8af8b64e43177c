import { PassThrough } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import { join } from '../protocol/jsonrpc.ts';
import type { Receiver } from './channel.ts';
import { HostedChannel } from './hosted.ts';
import { channelOpener } from './open.ts';
import type { ChildRecord } from './stdio.ts';

const noEvents = { onRequestPaused() {}, onMissed() {}, onStale() {} };
const deaf: Receiver = { ...noEvents, onMessage() {}, onRequestError() {}, onClosed() {}, log() {} };

function attached(maxBytes = 10_000) {
  const input = new PassThrough();
  const output = new PassThrough();
  const ended = new Promise<never>(() => {});
  const events: unknown[] = [];
  const channel = new HostedChannel({ kind: 'stdio', input, output, ended }, maxBytes, {
    onMessage: (chunks) => events.push(join(chunks).toString()),
    onRequestError: (request, { code }, sent) => events.push([request, code, sent]),
    onClosed: ({ message }) => events.push(`closed: ${message}`),
    log: (line) => events.push(`log: ${line}`),
    ...noEvents,
  });
  const written = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return ((input.read() as Buffer | null)?.toString() ?? '').split('\n').filter((line) => line !== '');
  };
  return { channel, output, events, written };
}

const message = (text: string) => [Buffer.from(JSON.stringify(text))];

it('writes one request at a time, in order, and everything else at once', async () => {
  const { channel, written } = attached();
  for (const request of [1, 2, 3, 4]) channel.send(message(`request ${request}`), request);
  channel.send(message('notification'));
  expect(await written()).toEqual(['"request 1"', '"notification"']);
  channel.settle(1);
  expect(await written()).toEqual(['"request 2"']);
  // Both are abandoned: one is never written, and the next request does not wait for the other.
  channel.abandon(3);
  channel.abandon(2);
  expect(await written()).toEqual(['"request 4"']);
  channel.settle(2);
  channel.settle(4);
  channel.send(message('request 5'), 5);
  expect(await written()).toEqual(['"request 5"']);
});

it('continues with the next request if one does not fit into the unread input', async () => {
  const { channel, events, written } = attached(100);
  channel.send(message('x'.repeat(120)));
  channel.send(message('y'.repeat(90)), 1);
  expect(events).toEqual([[1, 'server_unavailable', false]]);
  await written();
  channel.send(message('z'), 2);
  expect(await written()).toEqual(['"z"']);
});

it('starts each time with request ids that no other channel uses', () => {
  const firsts = Array.from({ length: 100 }, () => attached().channel.firstRequest);
  expect(new Set(firsts).size).toBe(100);
  expect(firsts.every((first) => Number.isSafeInteger(first) && first > 2 ** 31)).toBe(true);
});

it('reads messages until it is closed, and leaves the streams to the next one', async () => {
  const { channel, output, events } = attached();
  output.write('{"a":1}\nwhat is this\n{"b":');
  output.write('2}\n');
  await new Promise((resolve) => setImmediate(resolve));
  expect(events).toEqual([
    '{"a":1}',
    'log: stdout: skipped a line that is not JSON-RPC: what is this',
    '{"b":2}',
  ]);
  await channel.close();
  output.write('{"c":3}\n');
  await new Promise((resolve) => setImmediate(resolve));
  expect(events).toHaveLength(3);
  expect(output.destroyed).toBe(false);
});

it('reports once why the server is gone', async () => {
  const { channel, events } = attached();
  const error = new SwitchboardError('server_unavailable', 'It exited with code 1.');
  channel.serverEnded(error);
  channel.serverEnded(error);
  channel.send(message('late'), 1);
  expect(events).toEqual(['closed: It exited with code 1.']);
});

it('is garbage-collected after close while the server runs on', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const server = { input: new PassThrough(), output: new PassThrough(), ended: new Promise<never>(() => {}) };
  const hosts = { attach: () => Promise.resolve({ kind: 'stdio' as const, ...server }) };
  const attach = async () => {
    const open = await channelOpener({ type: 'hosted', id: 'one' }, 100, {} as ChildRecord, hosts);
    const channel = open(deaf);
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

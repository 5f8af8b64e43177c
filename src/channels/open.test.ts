import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Receiver } from './channel.ts';
import { channelOpener } from './open.ts';
import { ProcessRecord } from './process-record.ts';

const receiver: Receiver = {
  onMessage() {},
  onRequestError() {},
  onRequestPaused() {},
  onStale() {},
  onMissed() {},
  onClosed() {},
  log() {},
};
const nobody = { attach: () => Promise.reject(new Error('nothing is hosted here')) };

it('starts one process per turn of the event loop, in the order of the requests', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
  const record = ProcessRecord.open(folder, () => {});
  let turn = 0;
  const count = () => {
    turn++;
    counter = setImmediate(count);
  };
  let counter = setImmediate(count);
  const transport = { type: 'stdio', command: 'cat', args: [], env: {}, cwd: folder } as const;
  const started = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const open = await channelOpener({ ...transport, args: [] }, 1_000, record, nobody);
      const channel = open(receiver);
      return { turn, channel };
    }),
  );
  clearImmediate(counter);
  await Promise.all(started.map(({ channel }) => channel.close()));
  await rm(folder, { recursive: true });
  const turns = started.map((start) => start.turn);
  expect(turns).toEqual([...new Set(turns)].toSorted((one, other) => one - other));
});

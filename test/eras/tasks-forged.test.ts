import { expect, it } from 'vitest';
import { serverOf } from '../helpers/server-states.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { ModernPeer } from './modern-peer.ts';
import { begin, taskClient, taskServer } from './task-peer.ts';

it('forged task ids take no slot', async () => {
  await using peer = await ModernPeer.start({ lab: taskServer('lab') });
  const lab = { url: peer.url('lab'), concurrency: 2 };
  await using switchboard = await startSwitchboard({ lab });
  const client = taskClient(switchboard.url);
  const taskId = await begin(client, 'work');
  const parts = JSON.parse(Buffer.from(taskId.slice('sb-task.'.length), 'base64url').toString()) as unknown[];
  for (const own of [null, 1, {}, []]) {
    const forged = Buffer.from(JSON.stringify([...parts.slice(0, -1), own])).toString('base64url');
    await client.send('tasks/get', { taskId: `sb-task.${forged}` });
  }
  expect(await serverOf(switchboard, 'lab')).toMatchObject({ in_flight: 0, queued: 0 });
  expect(await client.request('tasks/get', { taskId })).toMatchObject({ result: { statusMessage: 'lab' } });
});

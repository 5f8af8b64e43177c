import { expect, it } from 'vitest';
import { allReady } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Site } from '../projects/site.ts';
import { ModernPeer } from './modern-peer.ts';
import { begin, taskClient, taskServer } from './task-peer.ts';

it('a task is queried at its replica', async () => {
  await using switchboard = await startSwitchboard({
    lab: { ...fixtureServer('eras/binds-state-to-process'), replicas: 2, startup: 'parallel' },
  });
  await allReady(switchboard, { lab: 2 });
  const client = taskClient(switchboard.url);
  // Both processes name their first task "1".
  const ids = [await begin(client, 'work'), await begin(client, 'work')];
  const doers = [];
  for (const taskId of [...ids, ...ids, ...ids]) {
    const { result, error } = await client.request('tasks/get', { taskId });
    doers.push(result?.statusMessage ?? error);
  }
  const [first, second] = doers;
  expect(first).not.toBe(second);
  expect(doers).toEqual([first, second, first, second, first, second]);
});

it('a task keeps its id after a restart of Switchboard', async () => {
  await using peer = await ModernPeer.start({ lab: taskServer('lab') });
  const servers = peer.configuration();
  let taskId: string;
  {
    await using before = await startSwitchboard(servers);
    taskId = await begin(taskClient(before.url), 'work');
  }
  await using after = await startSwitchboard(servers);
  const client = taskClient(after.url);
  expect(await client.request('tasks/get', { taskId })).toMatchObject({
    result: { taskId, statusMessage: 'lab' },
  });
});

it('a task of one project is unknown in another, even with servers of the same name', async () => {
  await using peer = await ModernPeer.start({ mine: taskServer('mine'), yours: taskServer('yours') });
  await using site = await Site.start('server');
  const [mine, yours, third] = await Promise.all(
    ['mine', 'yours', 'third'].map((name) => site.createProject(name)),
  );
  await mine!.add('lab', { transport: 'http', config: { url: peer.url('mine') } });
  await yours!.add('lab', { transport: 'http', config: { url: peer.url('yours') } });
  await third!.add('other', { transport: 'http', config: { url: peer.url('yours') } });
  const at = (project: string) => taskClient(`${site.baseUrl}/mcp/${project}`);
  const taskId = await begin(at('mine'), 'work');
  await begin(at('yours'), 'work');
  expect(await at('mine').request('tasks/get', { taskId })).toMatchObject({
    result: { statusMessage: 'mine' },
  });
  for (const project of ['third', 'yours']) {
    expect({ project, ...(await at(project).request('tasks/get', { taskId })) }).toMatchObject({
      project,
      error: { code: -32602, message: `Unknown task: ${taskId}` },
    });
  }
});

import { expect, it } from 'vitest';
import { fixtureServer } from '../helpers/switchboard.ts';
import { echoServer, errorIn, Scene } from './scene.ts';

it.concurrent('a removed server that ignores SIGTERM is killed, and delays no other', async () => {
  await using scene = await Scene.start((witness) => ({
    stubborn: echoServer(witness, 'ignores-sigterm', 'stubborn'),
  }));
  await scene.beside(async () => {
    await withoutFaulty(scene);
    await scene.witness.sees('stubborn', 'stdin end');
    await scene.witness.sees('stubborn', 'SIGTERM');
    await scene.healthyAnswers();
    expect(await scene.errorOf('stubborn__stay')).toMatchObject({ code: -32602 });
    await scene.witness.sees('stubborn', 'end');
  });
});

it.concurrent('a removed server that forks is stopped with its grandchild', async () => {
  await using scene = await Scene.start((witness) => ({
    forking: echoServer(witness, 'leaves-grandchild', 'forking'),
  }));
  const grandchild = Number(await scene.session.callText('forking__fork'));
  expect(await scene.witness.sees('forking-grandchild', 'start')).toMatchObject({ pid: grandchild });
  await scene.beside(async () => {
    await withoutFaulty(scene);
    await scene.witness.sees('forking', 'end');
    await scene.witness.sees('forking-grandchild', 'SIGTERM');
    await scene.healthyAnswers();
    await scene.witness.sees('forking-grandchild', 'end');
  });
});

it.concurrent('a server that is killed takes its grandchild along, and restarts before that one is gone', async () => {
  await using scene = await Scene.start((witness) => ({
    forking: echoServer(witness, 'leaves-grandchild', 'forking'),
  }));
  const { pid } = await scene.witness.sees('forking', 'start');
  const grandchild = Number(await scene.session.callText('forking__fork'));
  await scene.witness.sees('forking-grandchild', 'start');
  const stuck = await scene.stuckCall('forking', 'lost');
  await scene.beside(async () => {
    process.kill(pid, 'SIGKILL');
    expect(await errorIn(stuck)).toMatchObject({
      code: -32603,
      data: { code: 'server_unavailable', server: 'forking' },
    });
    const next = await scene.echoOf('forking__echo', { text: 'next' });
    expect(next).toMatchObject({ text: 'next', name: 'forking' });
    expect(next.pid).not.toBe(pid);
    await scene.witness.sees('forking-grandchild', 'end', (sighting) => sighting.pid === grandchild);
  });
});

it.concurrent('a server that closes its output but keeps running fails its calls, is stopped, and restarts', async () => {
  await using scene = await Scene.start((witness) => ({
    muting: echoServer(witness, 'closes-stdio', 'muting'),
  }));
  const before = await scene.echoOf('muting__echo', { text: 'before' });
  await scene.beside(async () => {
    expect(await scene.errorOf('muting__mute')).toMatchObject({
      code: -32603,
      message: expect.stringContaining('Server "muting": The server closed its stdout but did not exit.'),
      data: { code: 'server_unavailable', server: 'muting' },
    });
    await expectSuccessor(scene, 'muting', before.pid);
  });
});

it.concurrent('a server that closes its input but keeps running is stopped with the next call, and restarts', async () => {
  await using scene = await Scene.start((witness) => ({
    muting: echoServer(witness, 'closes-stdio', 'muting'),
  }));
  const before = await scene.echoOf('muting__echo', { text: 'before' });
  expect(await scene.session.callText('muting__plug')).toBe('plugged');
  await scene.beside(async () => {
    expect(await scene.errorOf('muting__echo', { text: 'unread' })).toMatchObject({
      code: -32603,
      message: expect.stringContaining('Server "muting": The server closed its stdin but did not exit.'),
      data: { code: 'server_unavailable', server: 'muting' },
    });
    await expectSuccessor(scene, 'muting', before.pid);
  });
});

/** Another process takes the next call, and the one before it exits. */
async function expectSuccessor(scene: Scene, server: string, pid: number): Promise<void> {
  const next = await scene.echoOf(`${server}__echo`, { text: 'next' });
  expect(next).toMatchObject({ text: 'next', name: server });
  expect(next.pid).not.toBe(pid);
  await scene.witness.sees(server, 'end', (sighting) => sighting.pid === pid);
  expect(await scene.view(server)).toMatchObject({ state: 'ready', restarts: 1 });
}

/** Removes every server but the healthy one from the configuration. */
async function withoutFaulty({ witness, switchboard }: Scene): Promise<void> {
  await switchboard.configure(
    { healthy: fixtureServer('toolbox', witness.env('healthy')) },
    { naming: 'always' },
  );
  await switchboard.event(({ event }) => event === 'configuration');
}

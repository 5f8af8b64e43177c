import { expect, it } from 'vitest';
import { fixtureServer } from '../helpers/servers.ts';
import { echoServer, errorIn, Scene } from './scene.ts';

it.concurrent('a server that ignores SIGTERM is killed when it is not wanted any more, and holds up nobody', async () => {
  await using scene = await Scene.start((witness) => ({ stubborn: echoServer(witness, 'stubborn') }));
  await scene.beside(async () => {
    await withoutFaulty(scene);
    await scene.witness.sees('stubborn', 'stdin end');
    await scene.witness.sees('stubborn', 'SIGTERM');
    await scene.healthyAnswers();
    expect(await scene.errorOf('stubborn__stay')).toMatchObject({ code: -32602 });
    await scene.witness.sees('stubborn', 'end');
  });
});

it.concurrent('a server that forks takes its grandchild along when it is not wanted any more', async () => {
  await using scene = await Scene.start((witness) => ({ forking: echoServer(witness, 'forking') }));
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

it.concurrent('a server that is killed takes its grandchild along, and is back before that one is gone', async () => {
  await using scene = await Scene.start((witness) => ({ forking: echoServer(witness, 'forking') }));
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

/** Takes every server but the healthy one out of the configuration. */
async function withoutFaulty({ witness, switchboard }: Scene): Promise<void> {
  await switchboard.configure({
    mcpServers: { healthy: fixtureServer('toolbox', witness.env('healthy')) },
    switchboard: { naming: 'always' },
  });
  await switchboard.event(({ event }) => event === 'configuration');
}

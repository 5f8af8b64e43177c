import { describe, expect, it } from 'vitest';
import { sharedEngine } from '../helpers/docker.ts';
import { isReady } from './hosting-site.ts';
import { type Cell, Scene } from './kill-matrix-scene.ts';
import { expectAll, forNames } from './kill-matrix-states.ts';

/** One cell of the matrix; the long suite covers the rest. */
const cells: Cell[] = [{ provider: 'docker', moment: 'called over REST' }];

describe.concurrent('[H9, H20] a server recovers', () => {
  it('after its container was killed', async ({ skip }) => {
    await using scene = await Scene.open(await sharedEngine({ skip }), cells);
    const { outcomes, inLine } = await scene.setToWork();
    await scene.table(scene.names, async (name) => scene.killContainer(await scene.containerOf(name)));
    expect(await outcomes()).toEqual({ 'docker-rest': '503 server_unavailable' });
    expect(await inLine()).toEqual(forNames(scene.busy, '["before","during"]'));
    await scene.allReach((view) => isReady(view) && view.restart_count > 0);
    await expectAll(scene, { restarts: 1, lastCrash: 'SIGKILL', isSameContainer: false });
  });

  it('or keeps running when Switchboard was killed', async ({ skip }) => {
    await using scene = await Scene.open(await sharedEngine({ skip }), cells);
    const { outcomes } = await scene.setToWork();
    await scene.killSwitchboard();
    expect(await outcomes()).toEqual({ 'docker-rest': 'broken off' });
    await scene.allReach(isReady);
    await expectAll(scene, { restarts: 0, lastCrash: null, isSameContainer: true });
  });
});

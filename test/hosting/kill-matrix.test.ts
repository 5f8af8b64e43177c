import { describe, expect, it } from 'vitest';
import { runIn } from '../helpers/containers.ts';
import { OwnEngine, sharedEngine } from '../helpers/docker.ts';
import { isReady } from './hosting-site.ts';
import { type Cell, Scene, type State, type Table } from './kill-matrix-scene.ts';

/** Most with plain containers, which start faster. */
const cells: Cell[] = [
  { provider: 'docker', moment: 'idle' },
  { provider: 'docker', moment: 'called over REST' },
  { provider: 'docker', moment: 'called over MCP' },
  { provider: 'gvisor', moment: 'idle' },
  { provider: 'gvisor', moment: 'called over REST' },
];
const busyCells = cells.filter(({ moment }) => moment !== 'idle');

/** What whoever waits for an answer is told where the server is gone. */
const unavailable = {
  'docker-rest': '503 server_unavailable',
  'docker-mcp': '-32603 server_unavailable',
  'gvisor-rest': '503 server_unavailable',
};
const brokenOff = { 'docker-rest': 'broken off', 'docker-mcp': 'broken off', 'gvisor-rest': 'broken off' };

describe.concurrent('[H9, H20] a server that is there again', () => {
  it('after its container was killed', async ({ skip }) => {
    await using scene = await Scene.open(await sharedEngine({ skip }), cells);
    const { outcomes } = await scene.setToWork();
    await scene.table(scene.names, async (name) => scene.killContainer(await scene.containerOf(name)));
    // Whoever comes now finds the next one, or is told that there is none yet.
    const meanwhile = await scene.table(scene.idle, (name) => scene.callOverRest(name, 'kept'));
    for (const answer of Object.values(meanwhile)) {
      expect(answer).toBeOneOf(['["before"]', '503 server_unavailable']);
    }
    expect(await outcomes()).toEqual(unavailable);
    await scene.allReach((view) => isReady(view) && view.restart_count > 0);
    await expectAll(scene, { restarts: 1, lastCrash: 'SIGKILL', isSameContainer: false });
  });

  it('after the process inside was killed', async ({ skip }) => {
    await using scene = await Scene.open(await sharedEngine({ skip }), cells);
    const { outcomes } = await scene.setToWork();
    await scene.table(scene.names, async (name) => {
      // The container may be gone before the engine has told how the program ended.
      await runIn(scene.engine, await scene.containerOf(name), killServer).catch(() => {});
    });
    expect(await outcomes()).toEqual(unavailable);
    await scene.allReach((view) => isReady(view) && view.restart_count > 0);
    await expectAll(scene, { restarts: 1, lastCrash: 'SIGKILL', isSameContainer: false });
  });

  it('after it ended by itself in the middle of a call', async ({ skip }) => {
    await using scene = await Scene.open(await sharedEngine({ skip }), busyCells);
    const answers = scene.table(scene.names, (name) => scene.call(name, 'die', { line: 'during', code: 3 }));
    expect(await answers).toEqual(unavailable);
    await scene.allReach((view) => isReady(view) && view.restart_count > 0);
    await expectAll(scene, { restarts: 1, lastCrash: 'code 3', isSameContainer: false });
  });

  it('and never went away when Switchboard was killed', async ({ skip }) => {
    await using scene = await Scene.open(await sharedEngine({ skip }), cells);
    const { outcomes } = await scene.setToWork();
    await scene.killSwitchboard();
    expect(await outcomes()).toEqual(brokenOff);
    await scene.allReach(isReady);
    await expectAll(scene, { restarts: 0, lastCrash: null, isSameContainer: true });
  });
});

describe.for([false, true])('[H20] an engine (live-restore: %s)', (liveRestore) => {
  it.for(['stop', 'kill'] as const)('is away after a %s, which is no crash', async (how, { skip }) => {
    await using engine = await OwnEngine.start({ skip }, { liveRestore });
    await using scene = await Scene.open(engine, cells);
    const { outcomes } = await scene.setToWork();
    await engine[how]();
    expect(await outcomes()).toEqual(unavailable);
    await scene.allReach(({ status }) => status === 'waiting');
    expect(await scene.table(scene.names, (name) => scene.callOverRest(name, 'kept'))).toEqual(
      forAll(scene, '503 server_unavailable'),
    );
    await engine.start();
    await scene.allReach(isReady);
    await expectAll(scene, { restarts: 0, lastCrash: null, isSameContainer: liveRestore });
  });
});

/** Ends the server, and not what started it, which is the first process of the container. */
const killServer = [
  '/usr/bin/node',
  '-e',
  `for (const pid of fs.readdirSync('/proc').filter(Number)) {
     const [program, file] = fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8').split('\\0');
     if (program === '/usr/bin/node' && file === '/srv/keeping.mjs') process.kill(Number(pid), 'SIGKILL');
   }`,
];

/** In any case there is one container and one volume for each, calls work, and what was kept is there once. */
async function expectAll(
  scene: Scene,
  same: Pick<State, 'restarts' | 'lastCrash' | 'isSameContainer'>,
): Promise<void> {
  const wanted = scene.names.map((name): [string, State] => {
    const kept = JSON.stringify(scene.busy.includes(name) ? ['before', 'during'] : ['before']);
    const calls = { overRest: kept, overMcp: kept };
    return [name, { ...same, ...calls, status: 'ready', containers: ['its own'], volumes: 1 }];
  });
  expect(await scene.states()).toEqual(Object.fromEntries(wanted));
  expect(await scene.hosting.containers()).toHaveLength(scene.names.length);
}

function forAll<Value>(scene: Scene, value: Value): Table<Value> {
  return Object.fromEntries(scene.names.map((name) => [name, value]));
}

import { describe, expect, it } from 'vitest';
import { runIn } from '../helpers/containers.ts';
import { dockerEvents, OwnEngine, sharedEngine } from '../helpers/docker.ts';
import { HostingSite, isReady } from './hosting-site.ts';
import { type Cell, Scene } from './kill-matrix-scene.ts';
import { expectAll, forNames, unavailable, unavailableInLine } from './kill-matrix-states.ts';

/** Mostly plain containers, which start faster. */
const cells: Cell[] = [
  { provider: 'docker', moment: 'idle' },
  { provider: 'docker', moment: 'called over REST' },
  { provider: 'docker', moment: 'called over MCP' },
  { provider: 'gvisor', moment: 'idle' },
  { provider: 'gvisor', moment: 'called over REST' },
];
const busyCells = cells.filter(({ moment }) => moment !== 'idle');

const overRest = '503 server_unavailable';
const brokenOff = { 'docker-rest': 'broken off', 'docker-mcp': 'broken off', 'gvisor-rest': 'broken off' };

describe.concurrent('[H9, H20] a server recovers', () => {
  it('after its container was killed', async ({ skip }) => {
    await using scene = await Scene.open(await sharedEngine({ skip }), cells);
    const { outcomes, inLine } = await scene.setToWork();
    await scene.table(scene.names, async (name) => scene.killContainer(await scene.containerOf(name)));
    // A call now reaches the next instance, or fails because none is ready.
    const meanwhile = await scene.table(scene.idle, (name) => scene.callOverRest(name, 'kept'));
    for (const answer of Object.values(meanwhile)) {
      expect(answer).toBeOneOf(['["before"]', '503 server_unavailable']);
    }
    expect(await outcomes()).toEqual(unavailable);
    expect(await inLine()).toEqual(forNames(scene.busy, '["before","during"]'));
    await scene.allReach((view) => isReady(view) && view.restart_count > 0);
    await expectAll(scene, { restarts: 1, lastCrash: 'SIGKILL', isSameContainer: false });
  });

  it('after the process in its container was killed', async ({ skip }) => {
    await using scene = await Scene.open(await sharedEngine({ skip }), cells);
    const { outcomes, inLine } = await scene.setToWork();
    await scene.table(scene.names, async (name) => {
      const container = await scene.containerOf(name);
      // The container may be gone before the engine has reported the exit of the program, which it then never does.
      void runIn(scene.engine, container, killServer).catch(() => {});
    });
    expect(await outcomes()).toEqual(unavailable);
    expect(await inLine()).toEqual(forNames(scene.busy, '["before","during"]'));
    await scene.allReach((view) => isReady(view) && view.restart_count > 0);
    await expectAll(scene, { restarts: 1, lastCrash: 'SIGKILL', isSameContainer: false });
  });

  it('after it exited during a call', async ({ skip }) => {
    await using scene = await Scene.open(await sharedEngine({ skip }), busyCells);
    const answers = scene.table(scene.names, (name) => scene.callToKeep(name, 'die', { code: 3 }));
    expect(await answers).toEqual(unavailable);
    await scene.allReach((view) => isReady(view) && view.restart_count > 0);
    await expectAll(scene, { restarts: 1, lastCrash: 'code 3', isSameContainer: false });
  });

  it('or keeps running when Switchboard was killed', async ({ skip }) => {
    await using scene = await Scene.open(await sharedEngine({ skip }), cells);
    const { outcomes, inLine } = await scene.setToWork();
    await scene.killSwitchboard();
    expect(await outcomes()).toEqual(brokenOff);
    expect(await inLine()).toEqual(brokenOff);
    await scene.allReach(isReady);
    await expectAll(scene, { restarts: 0, lastCrash: null, isSameContainer: true });
  });

  it('after its container was killed while Switchboard was down', async ({ skip }) => {
    await using scene = await Scene.open(await sharedEngine({ skip }), cells);
    const ids = await scene.table(scene.names, (name) => scene.containerOf(name));
    await scene.killSwitchboard(() => scene.table(scene.names, (name) => scene.killContainer(ids[name]!)));
    await scene.allReach(isReady);
    await expectAll(scene, { restarts: 0, lastCrash: null, isSameContainer: false });
  });

  it('after Switchboard was killed while starting it', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using hosting = await HostingSite.start({ engine });
    const label = [`dev.switchboard.owner=${hosting.owner}`];
    const image = await hosting.image('persists-lines');
    const created = dockerEvents(engine.socketPath, { label, event: ['create'] }, Date.now() / 1_000);
    const registered = ['one', 'two', 'three'].map((name) =>
      hosting.register({ name, image, provider: 'docker' }),
    );
    const ids = (await Promise.all(registered)).map(({ id }) => id);
    await created.next();
    await created.return(undefined);
    await hosting.killAndStart();
    for (const id of ids) {
      const { provider_workspace_id: container } = await hosting.reaches(id, isReady);
      expect(await hosting.containers(id)).toEqual([container]);
      expect(await hosting.tool(id, 'echo', { text: 'hello' })).toContain('hello');
    }
    expect(await hosting.containers()).toHaveLength(ids.length);
  });
});

describe.for([false, true])('[H20] an engine (live-restore: %s)', (liveRestore) => {
  it.for(['stop', 'kill'] as const)('is down after a %s, which is no crash', async (how, { skip }) => {
    await using engine = await OwnEngine.start({ skip }, { liveRestore });
    await using scene = await Scene.open(engine, cells);
    const { outcomes, inLine } = await scene.setToWork();
    await engine[how]();
    expect(await outcomes()).toEqual(unavailable);
    expect(await inLine()).toEqual(unavailableInLine);
    await scene.allReach(({ status }) => status === 'waiting');
    expect(await scene.table(scene.names, (name) => scene.callOverRest(name, 'kept'))).toEqual(
      forNames(scene.names, overRest),
    );
    await engine.start();
    await scene.allReach(isReady);
    await expectAll(scene, { restarts: 0, lastCrash: null, isSameContainer: liveRestore });
  });

  it('is down, and Switchboard is killed meanwhile', async ({ skip }) => {
    await using engine = await OwnEngine.start({ skip }, { liveRestore });
    await using scene = await Scene.open(engine, cells);
    await engine.stop();
    await scene.allReach(({ status }) => status === 'waiting');
    await scene.killSwitchboard();
    await scene.allReach(({ status }) => status === 'waiting');
    await engine.start();
    await scene.allReach(isReady);
    await expectAll(scene, { restarts: 0, lastCrash: null, isSameContainer: liveRestore });
  });
});

/** Kills the server, but not its parent, the first process of the container. */
const killServer = [
  '/usr/bin/node',
  '-e',
  `for (const pid of fs.readdirSync('/proc').filter(Number)) {
     const [program, file] = fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8').split('\\0');
     if (program === '/usr/bin/node' && file === '/srv/persists-lines.mjs') process.kill(Number(pid), 'SIGKILL');
   }`,
];

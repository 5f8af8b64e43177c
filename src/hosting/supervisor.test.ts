import { createHook } from 'node:async_hooks';
import { describe, expect, it } from 'vitest';
import { Ground, probe, quick } from '../../test/helpers/supervised.ts';
import { SwitchboardError } from '../errors.ts';
import type { Driver, InstanceSpec } from './driver.ts';

const isReady = { status: 'ready' };

function handles(): string[] {
  return process
    .getActiveResourcesInfo()
    .filter((type) => type !== 'Timeout')
    .sort();
}

/** Active timers set since then, including unreferenced ones. */
function countTimers() {
  const live = new Set<number>();
  const hook = createHook({
    init(id, type) {
      if (type === 'Timeout') live.add(id);
    },
    destroy: (id) => live.delete(id),
  }).enable();
  return { live, [Symbol.dispose]: () => void hook.disable() };
}

describe('a hosted server', () => {
  it('is started, reported and reachable', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    const speech = await watched.speak(server.id);
    expect(await speech.ask('echo hello')).toBe('hello');
    expect(watched.statuses(server.id)).toEqual(['starting', 'ready']);
    expect(watched.runs.items).toEqual([server.id]);
    expect(watched.supervisor.status(server.id)).toMatchObject({
      ...isReady,
      provider: 'process',
      instanceId: String(ground.groups[0]),
      startedAt: expect.any(Date),
      history: { restarts: 0, lastCrash: null, crashes: [], step: 0 },
    });
    expect((await watched.supervisor.usage(server.id))?.memoryBytes).toBeGreaterThan(0);
  });

  it('gives the same pipes to the next caller that attaches', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    expect(await (await watched.speak(server.id)).ask('echo one')).toBe('one');
    expect(await (await watched.speak(server.id)).ask('echo two')).toBe('two');
    expect(ground.groups).toHaveLength(1);
  });

  it('is reached by its address if it serves a port', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe({ more: { hasStdio: false, port: 49_200 } });
    watched.supervisor.apply([server]);
    expect(await watched.supervisor.attach(server.id)).toMatchObject({
      kind: 'url',
      url: 'http://127.0.0.1:49200',
    });
    await watched.untilStatus(server.id, 'ready');
    expect(watched.supervisor.status(server.id)?.url).toBe('http://127.0.0.1:49200');
  });

  it('keeps its published port after a restart of Switchboard', async () => {
    await using ground = await Ground.make();
    const specs: InstanceSpec[] = [];
    const driver: Driver = {
      provider: 'docker',
      unavailable: async () => undefined,
      start(spec, ...more) {
        specs.push(spec);
        return ground.processes.start(spec, ...more);
      },
    };
    const watched = ground.supervise({}, [driver]);
    const history = { restarts: 0, lastCrash: null, crashes: [], step: 0, hostPort: 49_201 };
    const server = probe({ history, does: () => ['stay'], more: { hasStdio: false, port: 49_202 } });
    watched.supervisor.apply([server]);
    expect((await watched.untilStatus(server.id, 'ready')).history.hostPort).toBe(49_202);
    await watched.supervisor.restart(server.id);
    expect(specs.map(({ formerHostPort }) => formerHostPort)).toEqual([49_201, 49_202]);
  });

  it('starts together with many others', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const servers = Array.from({ length: 5 }, () => probe());
    watched.supervisor.apply(servers);
    expect(servers.map(({ id }) => watched.status(id))).toEqual(Array(5).fill('starting'));
    await Promise.all(servers.map(({ id }) => watched.untilStatus(id, 'ready')));
    expect(ground.running).toHaveLength(5);
  });

  it('is unknown before it is applied', async () => {
    await using ground = await Ground.make();
    const { supervisor } = ground.supervise();
    supervisor.apply([]);
    await expect(supervisor.attach('nobody')).rejects.toThrow('no hosted server with the id "nobody"');
    await expect(supervisor.restart('nobody')).rejects.toMatchObject({ code: 'not_found' });
    expect(supervisor.status('nobody')).toBe(undefined);
    expect(supervisor.log('nobody')).toBe(undefined);
    expect(await supervisor.usage('nobody')).toBe(undefined);
  });
});

describe('a crash', () => {
  it('starts a new instance, and reports the exit code and last output', async () => {
    await using ground = await Ground.make();
    const redact = (_: string, text: string) => text.replaceAll('hunter2', '***');
    const watched = ground.supervise({ redact });
    const server = probe();
    watched.supervisor.apply([server]);
    const speech = await watched.speak(server.id);
    const again = watched.until(
      server.id,
      ({ history, status }) => history.restarts === 1 && status === 'ready',
    );
    speech.say('stderr the password is hunter2');
    speech.say('exit 3');
    const error = await speech.ended;
    expect(error).toMatchObject({ code: 'server_unavailable', data: { exitCode: 3, signal: null } });
    expect(error.message).toBe('The server exited with code 3; last output: the password is ***');
    const report = await again;
    expect(report).toMatchObject({
      ...isReady,
      history: {
        restarts: 1,
        lastCrash: {
          ...{ exit_code: 3, signal: null },
          reason: 'exited with code 3; last output: the password is ***',
        },
        crashes: [expect.any(String)],
        step: 0,
      },
    });
    expect(watched.warnings.items).toEqual([
      `Hosted server "${server.name}" exited with code 3. It restarts now. Last output: the password is ***`,
    ]);
    expect(watched.statuses(server.id)).toEqual(['starting', 'ready', 'restarting', 'starting', 'ready']);
    expect(watched.runs.items).toHaveLength(2);
    expect(await (await watched.speak(server.id)).ask('echo back')).toBe('back');
    const lines = watched.supervisor.log(server.id)!.lines.map(({ line }) => line);
    expect(lines).toContain('the password is ***');
    expect(lines.join('\n')).toContain('exited with code 3');
    expect(lines.join('\n')).not.toContain('hunter2');
  });

  it('by a signal counts too', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe({ restartPolicy: 'on-failure' });
    watched.supervisor.apply([server]);
    const speech = await watched.speak(server.id);
    speech.say('kill SIGKILL');
    expect((await speech.ended).message).toBe('The server was killed by SIGKILL.');
    const { history } = await watched.until(server.id, ({ history }) => history.restarts === 1);
    expect(history.lastCrash).toMatchObject({ exit_code: null, signal: 'SIGKILL' });
  });

  it('leaves nothing of the old instance next to the new one', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    const speech = await watched.speak(server.id);
    // The forked process ends only with SIGKILL.
    expect(await speech.ask('fork')).toBe('forked');
    speech.say('exit 1');
    await watched.until(server.id, ({ history }) => history.restarts === 1);
    expect(ground.running).toEqual([ground.groups[1]]);
  });

  it('in a loop is delayed, counted once each, with a warning', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe({ does: () => ['exit 7'] });
    watched.supervisor.apply([server]);
    const last = await watched.until(server.id, ({ history }) => history.step === 3);
    expect(last.status).toBe('backing_off');
    expect(last.nextTry!.getTime()).toBeGreaterThan(Date.now() + 500_000);
    const backedOff = watched.changes.items.filter(({ report }) => report.status === 'backing_off');
    expect(backedOff.map(({ report }) => report.history.step)).toEqual([1, 2, 3]);
    expect(watched.statuses(server.id).filter((status) => status === 'restarting')).toHaveLength(3);
    expect(ground.groups).toHaveLength(6);
    expect(last.history.restarts).toBe(5);
    expect(watched.warnings.items.filter((text) => text.includes('exited with code 7'))).toHaveLength(6);
    expect(watched.warnings.items.filter((text) => text.includes('in a crash loop'))).toHaveLength(3);
  });

  it('in a loop fails callers at once, and names the next retry', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe({ does: () => ['exit 7'] });
    watched.supervisor.apply([server]);
    const { nextTry } = await watched.until(server.id, ({ history }) => history.step === 3);
    const error = await watched.supervisor.attach(server.id).catch((thrown: SwitchboardError) => thrown);
    expect(error).toMatchObject({ code: 'server_unavailable', data: { status: 'backing_off' } });
    if (!(error instanceof SwitchboardError)) throw new Error('It must not run.');
    expect(error.message).toContain('exited with code 7');
    const retryAt = Date.parse(error.data.retryAt as string);
    expect(Math.abs(retryAt - nextTry!.getTime())).toBeLessThan(1_000);
  });

  it('in a loop is forgotten after a long enough run', async () => {
    await using ground = await Ground.make();
    const restarts = { firstDelaysMs: [], windowMs: 300, ladderMs: [1, 1, 1] };
    const watched = ground.supervise({ timing: { ...quick, restarts } });
    const plans = [['exit 1'], []];
    const server = probe({ does: () => plans.shift() ?? [] });
    watched.supervisor.apply([server]);
    await watched.until(server.id, ({ status, history }) => status === 'ready' && history.step === 1);
    const report = await watched.until(server.id, ({ history }) => history.step === 0);
    expect(report).toMatchObject({ ...isReady, history: { restarts: 1, crashes: [], step: 0 } });
    expect(ground.groups).toHaveLength(2);
  });

  it('leaves it stopped after a code of 0 with "on-failure", and failed with "never"', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const done = probe({ restartPolicy: 'on-failure', does: () => ['exit 0'] });
    const broken = probe({ restartPolicy: 'never', does: () => ['exit 2'] });
    watched.supervisor.apply([done, broken]);
    expect(await watched.untilStatus(done.id, 'stopped')).toMatchObject({
      reason: 'It exited with code 0.',
      history: { lastCrash: null },
    });
    expect(await watched.untilStatus(broken.id, 'failed')).toMatchObject({
      reason: 'It exited with code 2.',
      history: { lastCrash: { exit_code: 2 } },
    });
    await expect(watched.supervisor.attach(broken.id)).rejects.toThrow('exited with code 2');
    // Applying the same again changes nothing.
    watched.supervisor.apply([done, broken]);
    expect([watched.status(done.id), watched.status(broken.id)]).toEqual(['stopped', 'failed']);
    expect(ground.groups).toHaveLength(2);
    const again = watched.runs.next((id) => id === broken.id);
    watched.supervisor.apply([done, { ...broken, restartPolicy: 'always' }]);
    await again;
  });

  it('leaves no listeners, timers or pipes behind, however often it happens', async () => {
    await using ground = await Ground.make();
    const restarts = { firstDelaysMs: Array<number>(100).fill(0), windowMs: 600_000, ladderMs: [1] };
    const watched = ground.supervise({ timing: { ...quick, restarts } });
    let isSteady = true;
    const server = probe({ does: () => (isSteady ? [] : ['exit 1']) });
    watched.supervisor.apply([server]);
    const first = await watched.speak(server.id);
    expect(await first.ask('echo here')).toBe('here');
    const before = handles();
    using timers = countTimers();
    isSteady = false;
    first.say('exit 1');
    await watched.until(server.id, ({ history }) => history.restarts === 49);
    isSteady = true;
    await watched.until(server.id, ({ history, status }) => history.restarts >= 50 && status === 'ready');
    expect(await (await watched.speak(server.id)).ask('echo still here')).toBe('still here');
    // The running instance has the same handles as the first one.
    await expect.poll(handles).toEqual(before);
    await expect.poll(() => timers.live.size).toBeLessThan(5);
    expect(ground.running).toHaveLength(1);
  });
});

describe('a start that fails', () => {
  it('is retried less and less often if it may succeed later, and is no crash', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe({ more: { command: '/nowhere/at-all', args: [] } });
    watched.supervisor.apply([server]);
    const last = await watched.until(
      server.id,
      ({ nextTry }) => nextTry !== undefined && nextTry.getTime() - Date.now() > 100_000,
    );
    expect(last.status).toBe('backing_off');
    expect(last.reason).toContain('It could not be started: ');
    expect(last.reason).toContain('"/nowhere/at-all" was not found');
    expect(last.history).toEqual({ restarts: 0, lastCrash: null, crashes: [], step: 0 });
    expect(watched.warnings.items.join()).not.toContain('crash');
    const once = probe({ restartPolicy: 'never', more: { command: '/nowhere/at-all', args: [] } });
    watched.supervisor.apply([server, once]);
    expect(await watched.untilStatus(once.id, 'failed')).toMatchObject({ history: { lastCrash: null } });
  });

  it('is not retried if only a change can fix it', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe({ more: { command: undefined } });
    watched.supervisor.apply([server]);
    const { reason } = await watched.untilStatus(server.id, 'failed');
    expect(reason).toContain('needs a `command`');
    await expect(watched.supervisor.attach(server.id)).rejects.toThrow('needs a `command`');
    await expect(watched.supervisor.restart(server.id)).rejects.toThrow('needs a `command`');
    const again = watched.untilStatus(server.id, 'ready');
    watched.supervisor.apply([probe({ id: server.id, revision: '2' })]);
    await again;
  });

  it('without a secret is retried as soon as the secret exists', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    let isSet = false;
    const server = probe({
      does() {
        if (isSet) return [];
        throw new SwitchboardError('invalid_config', 'The secret TOKEN is missing.');
      },
    });
    watched.supervisor.apply([server]);
    expect(await watched.untilStatus(server.id, 'failed')).toMatchObject({
      reason: 'The secret TOKEN is missing.',
    });
    watched.supervisor.apply([server]);
    expect(watched.status(server.id)).toBe('failed');
    isSet = true;
    watched.supervisor.apply([server]);
    await watched.untilStatus(server.id, 'ready');
  });
});

describe('the persisted restart history', () => {
  const crashed = (step: number, agoMs: number) => {
    const at = new Date(Date.now() - agoMs).toISOString();
    const lastCrash = { at, exit_code: 1, signal: null, reason: 'exited with code 1' };
    return { restarts: 9, lastCrash, crashes: [at], step };
  };

  it('keeps the remaining delay when Switchboard restarts', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe({ history: crashed(3, 100_000) });
    watched.supervisor.apply([server]);
    const { status, nextTry, history } = watched.supervisor.status(server.id)!;
    expect(status).toBe('backing_off');
    const leftMs = nextTry!.getTime() - Date.parse(server.history.lastCrash!.at) - 100_000;
    expect(leftMs).toBeGreaterThan(490_000);
    expect(leftMs).toBeLessThan(510_000);
    expect(history).toEqual(server.history);
    await watched.supervisor.restart(server.id);
    expect(watched.supervisor.status(server.id)).toMatchObject({
      ...isReady,
      history: { restarts: 0, crashes: [], step: 0, lastCrash: { exit_code: 1 } },
    });
  });

  it('starts at once if the delay has passed, and still counts the loop', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe({ history: crashed(2, 10_000), does: () => ['exit 1'] });
    watched.supervisor.apply([server]);
    const report = await watched.untilStatus(server.id, 'backing_off');
    expect(report.history.step).toBe(3);
    expect(ground.groups).toHaveLength(1);
  });
});

describe('a manual restart', () => {
  it('ends the instance, starts another, and is not a crash', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    const speech = await watched.speak(server.id);
    expect(await speech.ask('echo ready')).toBe('ready');
    await watched.supervisor.restart(server.id);
    expect((await speech.ended).message).toBe('The server was stopped.');
    expect(ground.running).toEqual([ground.groups[1]]);
    expect(watched.supervisor.status(server.id)).toMatchObject({
      ...isReady,
      history: { restarts: 0, lastCrash: null, crashes: [], step: 0 },
    });
    expect(watched.supervisor.log(server.id)!.lines.map(({ line }) => line)).toContain('ends on SIGTERM');
    expect(watched.warnings.items).toEqual([]);
  });

  it('is shared by all concurrent requests', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    await watched.untilStatus(server.id, 'ready');
    await Promise.all([1, 2, 3].map(() => watched.supervisor.restart(server.id)));
    expect(ground.groups).toHaveLength(2);
  });

  it('ends a crash loop at once', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    let isMended = false;
    const server = probe({ does: () => (isMended ? [] : ['exit 1']) });
    watched.supervisor.apply([server]);
    await watched.until(server.id, ({ history }) => history.step === 3);
    isMended = true;
    await watched.supervisor.restart(server.id);
    expect(watched.supervisor.status(server.id)).toMatchObject({
      ...isReady,
      history: { restarts: 0, crashes: [], step: 0, lastCrash: { exit_code: 1 } },
    });
  });

  it('ends an instance that ignores SIGTERM', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise({ timing: { ...quick, restartGraceMs: 100 } });
    const server = probe();
    watched.supervisor.apply([server]);
    expect(await (await watched.speak(server.id)).ask('ignore-term')).toBe('ignoring');
    await watched.supervisor.restart(server.id);
    expect(ground.running).toEqual([ground.groups[1]]);
  });
});

describe('a change', () => {
  it('to its specification starts a new instance', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe({ more: { environment: { COLOUR: 'red' } } });
    watched.supervisor.apply([server]);
    expect(await (await watched.speak(server.id)).ask('env COLOUR')).toBe('"red"');
    const changed = probe({ id: server.id, revision: '2', more: { environment: { COLOUR: 'blue' } } });
    watched.supervisor.apply([changed]);
    expect(await (await watched.speak(server.id)).ask('env COLOUR')).toBe('"blue"');
    expect(ground.running).toEqual([ground.groups[1]]);
    expect(watched.warnings.items).toEqual([]);
  });

  /** A driver that cannot prepare images while `lacks` is set. */
  function preparing(ground: Ground) {
    const driver: Driver & { lacks: string | undefined } = {
      lacks: undefined,
      provider: 'docker',
      unavailable: async () => undefined,
      async prepare() {
        if (driver.lacks !== undefined) throw new SwitchboardError('invalid_config', driver.lacks);
      },
      start: (...args) => ground.processes.start(...args),
    };
    return driver;
  }

  it('to an unavailable image keeps it running, is reported, and is applied when the image is available', async () => {
    await using ground = await Ground.make();
    const driver = preparing(ground);
    const watched = ground.supervise({}, [driver]);
    const server = probe({ more: { environment: { COLOUR: 'red' } } });
    const { id } = server;
    watched.supervisor.apply([server]);
    const speech = await watched.speak(id);
    driver.lacks = 'There is no image "blue".';
    const changed = probe({ id, revision: '2', more: { environment: { COLOUR: 'blue' } } });
    watched.supervisor.apply([changed]);
    const kept = await watched.until(id, ({ reason }) => reason?.includes('no image') ?? false);
    expect(kept).toMatchObject({
      status: 'ready',
      reason: 'The new image is not available, so the old instance keeps running. There is no image "blue".',
      instanceId: String(ground.groups[0]),
      nextTry: expect.any(Date),
      history: { lastCrash: null, crashes: [], step: 0 },
    });
    expect(await speech.ask('env COLOUR')).toBe('"red"');
    expect(await (await watched.speak(id)).ask('env COLOUR')).toBe('"red"');
    await expect(watched.supervisor.restart(id)).rejects.toThrow('so the old instance keeps running');
    expect(await speech.ask('env COLOUR')).toBe('"red"');
    // Back to the running version: no new start.
    watched.supervisor.apply([server]);
    await watched.until(id, ({ status, reason }) => status === 'ready' && reason === undefined);
    expect(await speech.ask('env COLOUR')).toBe('"red"');
    watched.supervisor.apply([changed]);
    await watched.until(id, ({ reason }) => reason?.includes('no image') ?? false);
    driver.lacks = undefined;
    await watched.until(id, ({ status, instanceId }) => status === 'ready' && instanceId !== kept.instanceId);
    expect(await (await watched.speak(id)).ask('env COLOUR')).toBe('"blue"');
    expect(watched.supervisor.status(id)).toMatchObject({ reason: undefined, nextTry: undefined });
    expect(ground.running).toEqual([ground.groups[1]]);
  });

  it('shows why an upgrade is pending while the old instance starts, until the new one is ready', async () => {
    await using ground = await Ground.make();
    const driver = preparing(ground);
    const watched = ground.supervise({ mute: true }, [driver]);
    const server = probe();
    const { id } = server;
    const changed = probe({ id, revision: '2' });
    const isPending = ({ reason }: { reason: string | undefined }) => reason?.includes('no image') ?? false;
    watched.supervisor.apply([server]);
    await watched.runs.first(() => true);
    driver.lacks = 'There is no image "blue".';
    watched.supervisor.apply([changed]);
    expect(await watched.until(id, isPending)).toMatchObject({
      status: 'starting',
      nextTry: expect.any(Date),
    });
    // Back to the running version, which is still starting.
    watched.supervisor.apply([server]);
    await watched.until(id, ({ status, reason }) => status === 'starting' && reason === undefined);
    watched.supervisor.apply([changed]);
    await watched.until(id, isPending);
    watched.supervisor.initialized(id);
    expect(watched.supervisor.status(id)).toMatchObject({ status: 'ready', nextTry: expect.any(Date) });
    expect(isPending(watched.supervisor.status(id)!)).toBe(true);
    const restarted = watched.runs.next(() => true);
    driver.lacks = undefined;
    await restarted;
    expect(watched.supervisor.status(id)).toMatchObject({ status: 'starting', reason: undefined });
    watched.supervisor.initialized(id);
    expect(watched.supervisor.status(id)).toMatchObject({
      ...isReady,
      reason: undefined,
      nextTry: undefined,
      instanceId: String(ground.groups[1]),
    });
  });

  it('without differences keeps it running', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    const speech = await watched.speak(server.id);
    watched.supervisor.apply([probe({ id: server.id })]);
    expect(await speech.ask('echo same')).toBe('same');
    expect(watched.statuses(server.id)).toEqual(['starting', 'ready']);
  });

  it('that is reverted at once keeps it running', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    const speech = await watched.speak(server.id);
    watched.supervisor.apply([]);
    watched.supervisor.apply([server]);
    await watched.untilStatus(server.id, 'ready');
    expect(await speech.ask('echo same')).toBe('same');
    expect(ground.groups).toHaveLength(1);
  });

  it('to enabled starts it, and to disabled stops it', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([{ ...server, enabled: false }]);
    expect(watched.status(server.id)).toBe('stopped');
    await expect(watched.supervisor.attach(server.id)).rejects.toThrow('is disabled');
    await expect(watched.supervisor.restart(server.id)).rejects.toThrow('is disabled');
    watched.supervisor.apply([server]);
    await watched.untilStatus(server.id, 'ready');
    watched.supervisor.apply([{ ...server, enabled: false }]);
    await expect(watched.supervisor.attach(server.id)).rejects.toThrow('is disabled');
    expect(await watched.untilStatus(server.id, 'stopped')).toMatchObject({
      reason: 'It is disabled.',
      instanceId: undefined,
    });
    expect(ground.running).toEqual([]);
    expect(watched.warnings.items).toEqual([]);
  });

  it('that removes it stops and forgets it', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    const speech = await watched.speak(server.id);
    const gone = watched.untilStatus(server.id, 'stopped');
    watched.supervisor.apply([]);
    await speech.ended;
    await gone;
    expect(ground.running).toEqual([]);
    await expect.poll(() => watched.supervisor.status(server.id)).toBe(undefined);
    watched.supervisor.apply([server]);
    await watched.untilStatus(server.id, 'ready');
  });
});

describe('the volumes of a server', () => {
  it('survive crashes and removals, and are removed only on request', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe({ more: { volumes: ['/data'] } });
    watched.supervisor.apply([server]);
    const first = await watched.speak(server.id);
    expect(await first.ask('write /data/note kept')).toBe('written');
    first.say('exit 1');
    await first.ended;
    expect(await (await watched.speak(server.id)).ask('read /data/note')).toBe('"kept"');
    const gone = watched.untilStatus(server.id, 'stopped');
    watched.supervisor.apply([]);
    await gone;
    watched.supervisor.apply([server]);
    expect(await (await watched.speak(server.id)).ask('read /data/note')).toBe('"kept"');
    watched.supervisor.apply([]);
    expect(await watched.supervisor.removeVolumes(server.id)).toHaveLength(1);
    expect(ground.running).toEqual([]);
    // Also later, after the server is gone.
    expect(await watched.supervisor.removeVolumes(server.id)).toEqual([]);
    await expect(watched.supervisor.removeVolumes('nobody')).rejects.toMatchObject({ code: 'not_found' });
    watched.supervisor.apply([server]);
    expect(await (await watched.speak(server.id)).ask('read /data/note')).toBe('null');
  });
});

describe('a server that does not respond', () => {
  it('is reported as unresponsive, with a warning, and not restarted', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    watched.supervisor.heartbeat(server.id, false);
    expect(watched.status(server.id)).toBe('starting');
    const speech = await watched.speak(server.id);
    watched.supervisor.heartbeat(server.id, false);
    watched.supervisor.heartbeat(server.id, false);
    expect(watched.status(server.id)).toBe('unresponsive');
    expect(watched.warnings.items).toHaveLength(1);
    expect(watched.warnings.items[0]).toContain('does not respond');
    expect(await (await watched.speak(server.id)).ask('echo here')).toBe('here');
    watched.supervisor.heartbeat(server.id, true);
    watched.supervisor.heartbeat(server.id, true);
    expect(await speech.ask('echo here')).toBe('here');
    expect(watched.statuses(server.id)).toEqual(['starting', 'ready', 'unresponsive', 'ready']);
    expect(ground.groups).toHaveLength(1);
  });
});

describe('a running server without a completed handshake', () => {
  it('is starting, then unresponsive with its last output, and ready after the handshake', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise({ mute: true });
    const server = probe({ does: () => ['stderr waiting for a database'] });
    watched.supervisor.apply([server]);
    await watched.runs.first(() => true);
    await watched.speak(server.id);
    expect(watched.status(server.id)).toBe('starting');
    await expect
      .poll(() => watched.supervisor.log(server.id)!.lines.map(({ line }) => line))
      .toContain('waiting for a database');
    watched.supervisor.heartbeat(server.id, false, 'It is mute.');
    expect(watched.supervisor.status(server.id)).toMatchObject({
      status: 'unresponsive',
      reason: 'It is mute; last output: waiting for a database',
    });
    watched.supervisor.initialized(server.id);
    expect(watched.status(server.id)).toBe('ready');
    expect(watched.statuses(server.id)).toEqual(['starting', 'unresponsive', 'ready']);
    expect(ground.groups).toHaveLength(1);
  });

  it('fails a manual restart if the handshake fails or the server exits first', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise({ mute: true });
    let does: string[] = [];
    const server = probe({ does: () => does, restartPolicy: 'never' });
    watched.supervisor.apply([server]);
    await watched.runs.first(() => true);
    const next = () => watched.runs.next(() => true);
    let running = next();
    const mute = watched.supervisor.restart(server.id);
    await running;
    watched.supervisor.heartbeat(server.id, false, 'It is mute.');
    await expect(mute).rejects.toThrow('is not available: It is mute.');
    running = next();
    const good = watched.supervisor.restart(server.id);
    await running;
    watched.supervisor.initialized(server.id);
    await good;
    does = ['stderr no luck', 'exit 3'];
    await expect(watched.supervisor.restart(server.id)).rejects.toThrow(
      'It exited with code 3; last output: no luck',
    );
  });
});

describe('stopping', () => {
  it('ends all servers in parallel, even those that ignore SIGTERM, and starts none afterwards', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise({ timing: { ...quick, stopGraceMs: 200 } });
    const [polite, stubborn, looping, starting] = [
      probe(),
      probe(),
      probe({ does: () => ['exit 1'] }),
      probe(),
    ];
    watched.supervisor.apply([polite, stubborn, looping]);
    expect(await (await watched.speak(stubborn.id)).ask('ignore-term')).toBe('ignoring');
    await watched.untilStatus(polite.id, 'ready');
    await watched.until(looping.id, ({ history }) => history.step === 3);
    const all = [polite, stubborn, looping, starting];
    watched.supervisor.apply(all);
    await watched.supervisor.stop();
    expect(ground.running).toEqual([]);
    expect(all.map(({ id }) => watched.status(id))).toEqual(Array(4).fill('stopped'));
    const { length } = ground.groups;
    watched.supervisor.apply([...all, probe()]);
    await expect(watched.supervisor.restart(polite.id)).rejects.toThrow('Switchboard was stopped');
    await expect(watched.supervisor.attach(polite.id)).rejects.toThrow('Switchboard was stopped');
    await watched.supervisor.stop();
    expect(ground.groups).toHaveLength(length);
  });

  it('fails callers that wait for a restart', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    await watched.untilStatus(server.id, 'ready');
    const restart = watched.supervisor.restart(server.id);
    const stop = watched.supervisor.stop();
    await expect(restart).rejects.toThrow('Switchboard was stopped');
    await stop;
    expect(ground.running).toEqual([]);
  });
});

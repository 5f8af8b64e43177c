import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EngineLikeDriver, Ground, probe, quick, type Watched } from '../../test/helpers/supervised.ts';
import type { Driver } from './driver.ts';

async function onEngine() {
  const ground = await Ground.make();
  const driver = new EngineLikeDriver(ground.processes);
  return {
    ground,
    driver,
    supervise: () => ground.supervise({}, [driver]),
    /** Without a requested provider, a server uses the engine if it is available. */
    superviseBoth: () => ground.supervise({}, [driver, ground.processes]),
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  };
}

describe('while its provider is unavailable, a server', () => {
  it('waits, and is adopted without a crash once the provider is back', async () => {
    await using made = await onEngine();
    const watched = made.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    const speech = await watched.speak(server.id);
    const { instanceId } = watched.supervisor.status(server.id)!;
    made.driver.goAway('The engine does not answer.');
    expect((await speech.ended).message).toContain('The engine does not answer.');
    const away = await watched.untilStatus(server.id, 'waiting');
    expect(away).toMatchObject({ reason: 'The engine does not answer.', instanceId: undefined });
    await expect(watched.supervisor.attach(server.id)).rejects.toMatchObject({
      code: 'server_unavailable',
      data: { status: 'waiting' },
    });
    await expect(watched.supervisor.restart(server.id)).rejects.toThrow('The engine does not answer');
    await watched.untilStatus(server.id, 'waiting');
    made.driver.away = undefined;
    const back = await watched.untilStatus(server.id, 'ready');
    expect(back).toMatchObject({ instanceId, history: { restarts: 0, lastCrash: null, crashes: [] } });
    expect(made.driver.starts).toBe(1);
    expect(watched.runs.items).toHaveLength(2);
    expect(await (await watched.speak(server.id)).ask('echo same')).toBe('same');
  });

  it('is started once the provider is back, if it did not survive', async () => {
    await using made = await onEngine();
    const watched = made.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    const speech = await watched.speak(server.id);
    made.driver.goAway('The engine does not answer.');
    await watched.untilStatus(server.id, 'waiting');
    speech.say('exit 0');
    await made.driver.kept.get(server.id)?.instance.exited;
    made.driver.away = undefined;
    const { history } = await watched.untilStatus(server.id, 'ready');
    expect(history).toMatchObject({ lastCrash: null, crashes: [] });
    expect(made.driver.starts).toBe(2);
  });

  it('is not started before the provider is available', async () => {
    await using made = await onEngine();
    made.driver.away = 'Nobody listens there.';
    const watched = made.supervise();
    const servers = [probe(), probe()];
    watched.supervisor.apply(servers);
    for (const { id } of servers)
      expect(await watched.untilStatus(id, 'waiting')).toMatchObject({ reason: 'Nobody listens there.' });
    made.driver.away = undefined;
    for (const { id } of servers) await watched.untilStatus(id, 'ready');
    expect(made.driver.starts).toBe(2);
    expect(watched.warnings.items).toHaveLength(2);
  });

  it('that is removed or switched off is still cleaned up later', async () => {
    await using made = await onEngine();
    const watched = made.supervise();
    const [removed, off, kept] = [probe(), probe(), probe()];
    watched.supervisor.apply([removed, off, kept]);
    for (const { id } of [removed, off, kept]) await watched.untilStatus(id, 'ready');
    made.driver.goAway('The engine does not answer.');
    for (const { id } of [removed, off, kept]) await watched.untilStatus(id, 'waiting');
    watched.supervisor.apply([{ ...off, enabled: false }, kept]);
    await watched.untilStatus(off.id, 'stopped');
    expect(made.ground.running).toHaveLength(3);
    const ended = [removed, off].map(({ id }) => made.driver.kept.get(id)!.instance.exited);
    made.driver.away = undefined;
    await Promise.all(ended);
    await watched.untilStatus(kept.id, 'ready');
    expect([...made.driver.kept.keys()]).toEqual([kept.id]);
    expect(made.driver.starts).toBe(3);
  });
});

describe('a server that moves to another provider', () => {
  it('is removed from the previous one once that is back', async () => {
    await using made = await onEngine();
    const watched = made.superviseBoth();
    const server = probe();
    watched.supervisor.apply([server]);
    await watched.untilStatus(server.id, 'ready');
    made.driver.goAway('The engine does not answer.');
    await watched.untilStatus(server.id, 'waiting');
    watched.supervisor.apply([{ ...server, provider: 'process', revision: '2' }]);
    expect(await watched.untilStatus(server.id, 'ready')).toMatchObject({ provider: 'process' });
    const { exited } = made.driver.kept.get(server.id)!.instance;
    made.driver.away = undefined;
    await exited;
    expect(await (await watched.speak(server.id)).ask('echo here')).toBe('here');
    expect(made.ground.running).toEqual([made.ground.groups[1]]);
  });

  it('is removed even if the move was not observed', async () => {
    await using made = await onEngine();
    const first = made.superviseBoth();
    const server = probe();
    first.supervisor.apply([server]);
    await first.untilStatus(server.id, 'ready');
    const { exited } = made.driver.kept.get(server.id)!.instance;
    first.supervisor.release();
    const next = made.superviseBoth();
    next.supervisor.apply([{ ...server, provider: 'process', revision: '2' }]);
    await exited;
    expect(await (await next.speak(server.id)).ask('echo here')).toBe('here');
    expect(made.ground.running).toEqual([made.ground.groups[1]]);
  });

  it('stays if only something else changes while the provider is unavailable', async () => {
    await using made = await onEngine();
    const watched = made.superviseBoth();
    const server = probe();
    watched.supervisor.apply([server]);
    await watched.untilStatus(server.id, 'ready');
    made.driver.goAway('The engine does not answer.');
    await watched.untilStatus(server.id, 'waiting');
    watched.supervisor.apply([
      probe({ id: server.id, revision: '2', more: { environment: { COLOUR: 'blue' } } }),
    ]);
    await watched.untilStatus(server.id, 'waiting');
    made.driver.away = undefined;
    expect(await watched.untilStatus(server.id, 'ready')).toMatchObject({ provider: 'docker' });
    expect(await (await watched.speak(server.id)).ask('env COLOUR')).toBe('"blue"');
    expect(made.ground.running).toEqual([made.ground.groups[1]]);
  });
});

describe('a surviving instance', () => {
  it('is adopted by the next supervisor, and orphans are removed', async () => {
    await using made = await onEngine();
    const first = made.supervise();
    const [same, other, changed] = [probe(), probe(), probe()];
    first.supervisor.apply([same, other, changed]);
    for (const { id } of [same, other, changed]) await first.untilStatus(id, 'ready');
    const { instanceId } = first.supervisor.status(same.id)!;
    first.supervisor.release();
    const { length } = first.changes.items;
    expect(made.ground.running).toHaveLength(3);

    const next = made.supervise();
    const anew = probe({ id: changed.id, more: { environment: { COLOUR: 'blue' } } });
    next.supervisor.apply([same, anew]);
    expect(await next.untilStatus(same.id, 'ready')).toMatchObject({ instanceId });
    expect(await (await next.speak(changed.id)).ask('env COLOUR')).toBe('"blue"');
    expect([...made.driver.kept.keys()].sort()).toEqual([same.id, changed.id].sort());
    expect(made.ground.running).toHaveLength(2);
    expect(next.warnings.items.join()).toContain(other.id);
    expect(first.changes.items).toHaveLength(length);
  });

  it('is not used any more by the supervisor that released it', async () => {
    await using made = await onEngine();
    const first = made.supervise();
    const server = probe();
    first.supervisor.apply([server]);
    const speech = await first.speak(server.id);
    first.supervisor.release();
    expect((await speech.ended).message).toBe('Another Switchboard runs the server now.');
    expect(made.ground.running).toHaveLength(1);
  });

  it('is ended if no driver can adopt it', async () => {
    await using ground = await Ground.make();
    const watched = ground.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    const speech = await watched.speak(server.id);
    watched.supervisor.release();
    await speech.ended;
    await watched.supervisor.stop();
    expect(ground.running).toEqual([]);
    expect(watched.statuses(server.id)).toEqual(['starting', 'ready']);
  });

  it('is not mistaken for a new one by a manual restart', async () => {
    await using made = await onEngine();
    const watched = made.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    await watched.untilStatus(server.id, 'ready');
    made.driver.goAway('The engine does not answer.');
    await watched.untilStatus(server.id, 'waiting');
    made.driver.away = undefined;
    await watched.supervisor.restart(server.id);
    expect(made.driver.starts).toBe(2);
    expect(made.ground.running).toEqual([made.ground.groups[1]]);
  });
});

describe('a slow start', () => {
  it('is aborted by a removal, without leftovers', async () => {
    await using made = await onEngine();
    made.driver.gate = new Promise(() => {});
    const watched = made.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    const attachment = watched.supervisor.attach(server.id);
    await expect.poll(() => made.driver.starts).toBe(1);
    watched.supervisor.apply([]);
    await expect(attachment).rejects.toThrow('It was removed.');
    await watched.untilStatus(server.id, 'stopped');
    await expect.poll(() => watched.supervisor.status(server.id)).toBe(undefined);
    expect(made.driver.aborted).toBe(1);
    expect(made.ground.running).toEqual([]);
  });

  it('is aborted by a change, a manual restart and a stop', async () => {
    await using made = await onEngine();
    made.driver.gate = new Promise(() => {});
    const watched = made.supervise();
    const server = probe();
    watched.supervisor.apply([server]);
    await expect.poll(() => made.driver.starts).toBe(1);
    watched.supervisor.apply([{ ...server, revision: '2' }]);
    await expect.poll(() => made.driver.starts).toBe(2);
    const restart = watched.supervisor.restart(server.id);
    await expect.poll(() => made.driver.starts).toBe(3);
    const stopped = watched.supervisor.stop();
    await expect(restart).rejects.toThrow('Switchboard was stopped');
    await stopped;
    expect(made.driver.aborted).toBe(3);
    expect(made.ground.running).toEqual([]);
  });

  it('that cannot be aborted is reported, even after switching off and on again', async () => {
    await using ground = await Ground.make();
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const deaf: Driver = {
      provider: 'docker',
      unavailable: async () => undefined,
      async start(spec, events) {
        begun.resolve();
        await gate.promise;
        return ground.processes.start(spec, events, new AbortController().signal);
      },
    };
    const watched = ground.supervise({}, [deaf]);
    const server = probe();
    watched.supervisor.apply([server]);
    await begun.promise;
    watched.supervisor.apply([{ ...server, enabled: false }]);
    watched.supervisor.apply([server]);
    gate.resolve();
    await watched.untilStatus(server.id, 'ready');
    expect(await watched.runs.first((id) => id === server.id)).toBe(server.id);
    expect(watched.runs.items).toHaveLength(1);
  });

  it('delays callers no longer than the attach timeout', async () => {
    await using made = await onEngine();
    made.driver.gate = new Promise(() => {});
    const watched = made.ground.supervise({ timing: { ...quick, attachMs: 50 } }, [made.driver]);
    const server = probe();
    watched.supervisor.apply([server]);
    await expect(watched.supervisor.attach(server.id)).rejects.toThrow('still being started');
  });
});

describe('for any sequence of events', () => {
  type Deed = 'kill' | 'restart' | 'change' | 'remove' | 'switch' | 'away' | 'back' | 'wait' | 'tick';
  const deeds = fc.array(
    fc.constantFrom<Deed>('kill', 'restart', 'change', 'remove', 'switch', 'away', 'back', 'wait', 'tick'),
    { minLength: 3, maxLength: 12 },
  );

  it('a server has at most one instance, and ends in the desired state', async () => {
    await fc.assert(
      fc.asyncProperty(deeds, async (sequence) => {
        await using made = await onEngine();
        const watched = made.supervise();
        const server = probe();
        let wanted = server;
        let revision = 1;
        watched.supervisor.apply([wanted]);
        for (const deed of sequence) {
          if (deed === 'kill') killAll(made.ground);
          if (deed === 'restart') watched.supervisor.restart(server.id).catch(() => {});
          if (deed === 'change') wanted = { ...wanted, revision: String(++revision) };
          if (deed === 'switch') wanted = { ...wanted, enabled: !wanted.enabled };
          if (deed === 'away') made.driver.goAway('The engine does not answer.');
          if (deed === 'back') made.driver.away = undefined;
          if (deed === 'wait') await settled(watched, server.id);
          if (deed === 'tick') await new Promise(setImmediate);
          watched.supervisor.apply(deed === 'remove' ? [] : [wanted]);
          expect(made.ground.running.length).toBeLessThanOrEqual(1);
        }
        made.driver.away = undefined;
        wanted = { ...wanted, enabled: true, revision: 'last' };
        watched.supervisor.apply([wanted]);
        await watched.supervisor.restart(server.id).catch(() => {});
        expect(await (await watched.speak(server.id)).ask('echo here')).toBe('here');
        expect(made.ground.running).toHaveLength(1);
        expect(made.driver.doubled).toBe(0);
        watched.supervisor.apply([]);
        await expect.poll(() => watched.supervisor.status(server.id)).toBe(undefined);
        expect(made.ground.running).toEqual([]);
        expect(made.driver.kept.size).toBe(0);
      }),
      { numRuns: 15, endOnFailure: true },
    );
  });

  function killAll(ground: Ground): void {
    for (const group of ground.running) process.kill(-group, 'SIGKILL');
  }

  async function settled(watched: Watched, id: string): Promise<void> {
    await watched.until(
      id,
      ({ status }) => status === 'ready' || status === 'stopped' || status === 'waiting',
    );
  }
});

/** Loaded into Switchboard with --import. On SIGUSR2 it writes what only the process can see to the file SOAK_PROBE. */
import { createHook } from 'node:async_hooks';
import type { EventEmitter } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const { SOAK_PROBE = '' } = process.env;

// The list of active resources omits unreferenced timers, which most of ours are.
const timers = new Set<number>();
createHook({
  init: (id, type) => {
    if (type === 'Timeout') timers.add(id);
  },
  destroy: (id) => {
    timers.delete(id);
  },
  trackPromises: false,
}).enable();

const warnings: string[] = [];
process.on('warning', ({ name, message }) => warnings.push(`${name}: ${message}`));

// The most CPU time between two ticks of a timer that fires every turn of the event loop, so a busy machine does not matter.
const TICK_MS = 10;
let longestTurn = 0;
let lastTick = computed();
setInterval(() => {
  const now = computed();
  longestTurn = Math.max(longestTurn, now - lastTick);
  lastTick = now;
}, TICK_MS).unref();

function computed(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

process.on('SIGUSR2', async () => {
  // Freed buffers are counted until the collection after the one that finds them.
  for (let time = 0; time < 2; time++) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  const { heapUsed, external } = process.memoryUsage();
  const resources: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  const report = {
    resources: { ...resources, Timeout: timers.size },
    listeners: {
      process: listenersOf(process),
      'busiest handle': Math.max(0, ...handles().map(listenersOf)),
    },
    liveMegabytes: (heapUsed + external) / 2 ** 20,
    longestTurnMs: longestTurn,
    warnings,
  };
  writeFileSync(`${SOAK_PROBE}.new`, JSON.stringify(report));
  renameSync(`${SOAK_PROBE}.new`, SOAK_PROBE);
  // Excludes the time of the probe.
  lastTick = computed();
  longestTurn = 0;
});

function handles(): EventEmitter[] {
  const { _getActiveHandles: active } = process as unknown as { _getActiveHandles(): EventEmitter[] };
  return active.call(process).filter((handle) => typeof handle.eventNames === 'function');
}

function listenersOf(emitter: EventEmitter): number {
  return emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0);
}

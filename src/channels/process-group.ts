import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { groupRuns } from './process-table.ts';

/** How long each step of stopping a child may take before the next, harsher one. */
interface StopDeadlines {
  /** From the end of its stdin to SIGTERM. */
  termAfterMs: number;
  /** From SIGTERM to SIGKILL. */
  killAfterMs: number;
}

export const DEADLINES: StopDeadlines = { termAfterMs: 2_000, killAfterMs: 3_000 };
/** Nothing withstands SIGKILL, but whoever is in the middle of a system call finishes it first. */
const KILL_TAKES_MS = 1_000;

/**
 * Stops a child that leads its own process group, and everything that it started: the end of its input first,
 * then SIGTERM, then SIGKILL.
 */
export async function stopGroup(child: ChildProcess, deadlines: StopDeadlines): Promise<void> {
  const group = child.pid;
  if (group === undefined) return;
  const exited = hasExited(child) ? Promise.resolve() : new Promise((resolve) => child.once('exit', resolve));
  child.stdin?.end();
  if (!hasExited(child)) await within(exited, deadlines.termAfterMs);
  await endGroup(group, deadlines.killAfterMs);
  await exited;
}

/** Ends what is left of a group, whose leader may be gone already: one SIGTERM, then SIGKILL. Settles when it is gone. */
export async function endGroup(group: number, killAfterMs: number): Promise<void> {
  if (!signalGroup(group, 'SIGTERM')) return;
  if (await isGoneWithin(group, killAfterMs)) return;
  signalGroup(group, 'SIGKILL');
  await isGoneWithin(group, KILL_TAKES_MS);
}

/** There is no event for the end of a process that is not our child: ask. */
async function isGoneWithin(group: number, milliseconds: number): Promise<boolean> {
  const deadline = Date.now() + milliseconds;
  for (let pauseMs = 20; Date.now() < deadline; pauseMs = Math.min(pauseMs * 2, 200)) {
    await delay(pauseMs);
    if (!groupRuns(group)) return true;
  }
  return false;
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** False when the group has no process any more. */
export function signalGroup(group: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch {
    return false;
  }
}

async function within(event: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const timer = new AbortController();
  const late = delay(milliseconds, false, { signal: timer.signal }).catch(() => false);
  const happened = await Promise.race([event.then(() => true), late]);
  timer.abort();
  return happened;
}

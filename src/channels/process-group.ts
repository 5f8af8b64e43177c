import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';

/** How long each step of stopping a child may take before the next, harsher one. */
export interface StopDeadlines {
  /** From the end of its stdin to SIGTERM. */
  termAfterMs: number;
  /** From SIGTERM to SIGKILL. */
  killAfterMs: number;
}

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

/** Ends what is left of a group, whose leader may be gone already: one SIGTERM, then SIGKILL. */
export async function endGroup(group: number, killAfterMs: number): Promise<void> {
  if (!signalGroup(group, 'SIGTERM')) return;
  const deadline = Date.now() + killAfterMs;
  // There is no event for the end of a process that is not our child: ask.
  while (Date.now() < deadline) {
    await delay(20);
    if (!signalGroup(group, 0)) return;
  }
  signalGroup(group, 'SIGKILL');
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** False when the group has no process any more. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
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

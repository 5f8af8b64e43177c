import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { groupRuns } from './process-table.ts';
import { settlesWithin } from './timing.ts';

/** When to escalate while stopping a child. */
interface StopDeadlines {
  /** From the end of its stdin to SIGTERM. */
  termAfterMs: number;
  /** From SIGTERM to SIGKILL. */
  killAfterMs: number;
}

export const DEADLINES: StopDeadlines = { termAfterMs: 2_000, killAfterMs: 3_000 };
/** A process finishes its current system call before SIGKILL takes effect. */
const KILL_TAKES_MS = 1_000;

/** Stops a child and its whole process group: closes stdin, then sends SIGTERM, then SIGKILL. */
export async function stopGroup(child: ChildProcess, deadlines: StopDeadlines): Promise<void> {
  const group = child.pid;
  if (group === undefined) return;
  const exited = hasExited(child) ? Promise.resolve() : new Promise((resolve) => child.once('exit', resolve));
  child.stdin?.end();
  if (!hasExited(child)) await settlesWithin(exited, deadlines.termAfterMs);
  await endGroup(group, deadlines.killAfterMs);
  await exited;
}

/** Ends what is left of a group with SIGTERM, then SIGKILL. Resolves when it is gone. */
export async function endGroup(group: number, killAfterMs: number): Promise<void> {
  if (!signalGroup(group, 'SIGTERM')) return;
  if (await isGoneWithin(group, killAfterMs)) return;
  signalGroup(group, 'SIGKILL');
  await isGoneWithin(group, KILL_TAKES_MS);
}

/** Polls: there is no event for the exit of a process that is not our child. */
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

/** Returns false if the group has no process left. */
export function signalGroup(group: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch {
    return false;
  }
}

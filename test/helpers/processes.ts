import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

export interface TestProcess extends AsyncDisposable {
  pid: number;
  said: string;
  /** Resolves when the process and all others that hold its output are gone. */
  ended: Promise<unknown>;
  isAlive(): boolean;
}

/** Runs a script as the leader of a process group, and waits for its first output. */
export async function startScript(script: string, env: Record<string, string> = {}): Promise<TestProcess> {
  const child: ChildProcessByStdio<null, Readable, null> = spawn('sh', ['-c', script], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  const ended = once(child, 'close');
  const [said] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return {
    pid: child.pid!,
    said,
    ended,
    isAlive: () => isAlive(child.pid!),
    async [Symbol.asyncDispose]() {
      if (isAlive(-child.pid!)) process.kill(-child.pid!, 'SIGKILL');
      await ended;
    },
  };
}

/** A negative number means a process group. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Exits when another program has replaced its shell, which then does not reap it. */
export const whenReplaced = 'until grep -q sleep /proc/$$/comm; do :; done';

/** Polls, because only children have an exit event. A zombie counts as gone. */
export async function untilGone(pid: number): Promise<void> {
  while (isRunning(pid)) await delay(10);
}

export function isRunning(pid: number): boolean {
  if (!existsSync('/proc/self/stat')) return isAlive(pid);
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** The resident or peak memory of a process in MB, on Linux. Throws if it has ended. */
export function memoryOf(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)![1]) / 1024;
}

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** PostgreSQL takes settings from PG… variables and its language from the locale: it shall take ours only. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
}

/** Also true of a process that is not ours to signal. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Whether the process was started with this word; never true of a zombie. */
export function isStartedWith(pid: number, word: string): boolean {
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
    return stdout.includes(word);
  }
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(word);
  } catch {
    return false;
  }
}

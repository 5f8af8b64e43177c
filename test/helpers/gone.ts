import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Not our child, so there is no event for its end: ask. One that nobody has reaped yet has ended too. */
export async function untilGone(pid: number): Promise<void> {
  while (isThere(pid)) await delay(10);
}

export function isThere(pid: number): boolean {
  const status = `/proc/${pid}/stat`;
  if (existsSync('/proc/self/stat')) {
    try {
      return !/\) [ZX] /.test(readFileSync(status, 'utf8'));
    } catch {
      return false;
    }
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

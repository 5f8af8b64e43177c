import { readFileSync } from 'node:fs';

/** Programs have no event for it. */
const POLL_MS = 1_000;

/**
 * Calls `gone` when the npm or npx that started us has ended, or bin/switchboard.js where that has only launched us. npm
 * starts us through a shell, and passes SIGTERM on to that and not to us: whoever ends npm would leave us behind. So would
 * whoever kills the launcher, which is what he has started. Other parents may go before us, and so may npm for whoever
 * leads a session of its own (setsid).
 */
export function onParentGone(gone: () => void): void {
  const isLaunched = process.env.SWITCHBOARD_LAUNCHER === String(process.ppid);
  const isOfNpm = process.env.npm_lifecycle_event !== undefined || process.env.npm_command !== undefined;
  if (!isLaunched && (!isOfNpm || process.ppid === 1 || leadsSession())) return;
  const ancestors = ancestorsNow();
  const timer = setInterval(() => {
    if (ancestorsNow() === ancestors) return;
    clearInterval(timer);
    gone();
  }, POLL_MS);
  timer.unref();
}

/** Our parent, and where that is a shell with a command of npm, npm itself: the shell outlives it where it was killed. */
function ancestorsNow(): string {
  const parent = process.ppid;
  const isShell = /^[^\0]*sh\0-c\0/.test(read(`/proc/${parent}/cmdline`));
  return isShell ? `${parent} ${parentOf(parent)}` : String(parent);
}

function parentOf(pid: number): string | undefined {
  return statOf(pid)[1];
}

function leadsSession(): boolean {
  return statOf(process.pid)[3] === String(process.pid);
}

/** What Linux tells of a process behind its name, which may have any sign in it: state, parent, group, session. */
function statOf(pid: number): string[] {
  const text = read(`/proc/${pid}/stat`);
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** Empty where there is no such file, as on other systems. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

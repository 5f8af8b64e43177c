import { readFileSync } from 'node:fs';

/** There is no event for the exit of a parent. */
const POLL_MS = 1_000;

/**
 * Calls `gone` when npm, npx or the launcher bin/switchboard.js that started us exits. npm runs us in a shell and sends
 * SIGTERM only to that shell, and a killed launcher sends nothing, so we would be orphaned. Other parents may exit first,
 * and so may npm if we lead our own session (setsid).
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

/** The parent, and npm if the parent is npm's shell, which survives when npm is killed. */
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

/** The fields after the name, which may contain any character: state, parent, group, session. Linux only. */
function statOf(pid: number): string[] {
  const text = read(`/proc/${pid}/stat`);
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** Empty if the file does not exist, as on other systems. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

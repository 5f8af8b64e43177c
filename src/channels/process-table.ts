import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ProcessFacts {
  /** Distinguishes processes that had the same pid at different times. */
  startTime: string;
  group: number;
  /** It exited, but its parent has not collected the exit status. */
  isZombie: boolean;
}

/** Where a pid is valid: until the next reboot, in one container. Empty if unknown. */
export interface PidSpace {
  boot: string;
  namespace: string;
}

export function pidSpace(): PidSpace {
  return {
    boot: attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()) ?? '',
    namespace: attempt(() => readlinkSync('/proc/self/ns/pid')) ?? '',
  };
}

export function readProcess(pid: number, platform = process.platform): ProcessFacts | undefined {
  return platform === 'linux' ? readStat(pid) : askPs(pid);
}

/** Whether a group has a running process that we may signal. Counts zombies, except on Linux. */
export function groupRuns(group: number): boolean {
  const exists = attempt(() => process.kill(-group, 0)) === true;
  if (!exists || process.platform !== 'linux') return exists;
  // In a container there may be no init that reaps zombies.
  return runningIn(group).next().done === false;
}

/** Whether a group still has a process with this variable in its environment. Linux only. */
export function groupCarries(group: number, name: string, value: string): boolean {
  return [...runningIn(group)].some((pid) => environmentOf(pid).includes(`${name}=${value}`));
}

/** The pids of a group, without zombies. Linux only. */
export function* runningIn(group: number): Generator<number> {
  for (const entry of attempt(() => readdirSync('/proc')) ?? []) {
    const pid = Number(entry);
    if (!Number.isInteger(pid)) continue;
    const facts = readStat(pid);
    if (facts?.group === group && !facts.isZombie) yield pid;
  }
}

function readStat(pid: number): ProcessFacts | undefined {
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  return text === undefined ? undefined : parseStat(text);
}

/** The name, in parentheses, may contain spaces and parentheses itself. */
export function parseStat(text: string): ProcessFacts {
  const afterName = text.slice(text.lastIndexOf(')') + 2).split(' ');
  // Numbers as in proc(5), where pid and name are 1 and 2.
  const field = (number: number) => afterName[number - 3]!;
  // A process whose main thread exited looks like a zombie while other threads run.
  const isZombie = 'ZX'.includes(field(3)) && Number(field(20)) <= 1;
  return { startTime: field(22), group: Number(field(5)), isZombie };
}

function askPs(pid: number): ProcessFacts | undefined {
  const { stdout, status } = spawnSync(
    'ps',
    ['-o', 'pgid=', '-o', 'stat=', '-o', 'lstart=', '-p', String(pid)],
    // The start time is compared as text, so it must not depend on locale or time zone.
    { encoding: 'utf8', env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' } },
  );
  const found = status === 0 ? /^\s*(\d+)\s+(\S+)\s+(\S.*\S)\s*$/.exec(stdout) : null;
  if (found === null) return undefined;
  const [, group, state, startTime] = found;
  return { startTime: startTime!, group: Number(group), isZombie: state!.startsWith('Z') };
}

function environmentOf(pid: number): string[] {
  return attempt(() => readFileSync(`/proc/${pid}/environ`, 'utf8'))?.split('\0') ?? [];
}

/** For reads that fail if the process exits meanwhile or is not ours. */
export function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ProcessFacts {
  /** Together with the pid it tells a process from every other one, before and after it, that has the same pid. */
  startTime: string;
  group: number;
  /** It has ended, and its parent has not asked how. */
  isZombie: boolean;
}

/** Where a pid means what it meant: not after a reboot, and not in another container. Empty where nobody tells. */
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

/** Undefined where there is no such process, or nobody tells. */
export function readProcess(pid: number, platform = process.platform): ProcessFacts | undefined {
  return platform === 'linux' ? readStat(pid) : askPs(pid);
}

/** Whether a group has a process that still runs, and that we may signal. Elsewhere than on Linux zombies count too. */
export function groupRuns(group: number): boolean {
  const isThere = attempt(() => process.kill(-group, 0)) === true;
  if (!isThere || process.platform !== 'linux') return isThere;
  // In a container there may be nobody who takes zombies away.
  return runningIn(group).next().done === false;
}

/**
 * Whether a group still has a process that was started with this variable, which its children inherit. Only Linux
 * tells.
 */
export function groupCarries(group: number, name: string, value: string): boolean {
  return [...runningIn(group)].some((pid) => environmentOf(pid).includes(`${name}=${value}`));
}

/** The pids of a group, without those that have ended. Only Linux tells. */
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

/** The name, in parentheses, may have spaces and parentheses in it; what follows it are single letters and numbers. */
export function parseStat(text: string): ProcessFacts {
  const afterName = text.slice(text.lastIndexOf(')') + 2).split(' ');
  // The manual counts from 1, and the pid and the name come before these.
  const field = (number: number) => afterName[number - 3]!;
  // A process whose first thread has ended looks like a zombie, while others run.
  const isZombie = 'ZX'.includes(field(3)) && Number(field(20)) <= 1;
  return { startTime: field(22), group: Number(field(5)), isZombie };
}

function askPs(pid: number): ProcessFacts | undefined {
  const { stdout, status } = spawnSync(
    'ps',
    ['-o', 'pgid=', '-o', 'stat=', '-o', 'lstart=', '-p', String(pid)],
    // The time is a text: it has to read the same whoever asks.
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

/** Processes end while one looks at them, and some are not for us to see. */
export function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Reads CPU time, memory and children of processes, and pins them to CPUs. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const PIN_COMMAND = 'taskset';
const NANOSECONDS_PER_TICK = 10_000_000;

/** CPU time that all threads of the process have used so far. */
export function cpuNanoseconds(pid: number): number {
  let total = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const running = schedulerNanoseconds(`/proc/${pid}/task/${thread}/schedstat`);
    if (running === undefined) return cpuNanosecondsByTicks(pid);
    total += running;
  }
  return total;
}

function schedulerNanoseconds(path: string): number | undefined {
  try {
    return Number(readFileSync(path, 'latin1').split(' ', 1)[0]);
  } catch {
    return undefined;
  }
}

/** Kernels without scheduler statistics count only in hundredths of a second. */
function cpuNanosecondsByTicks(pid: number): number {
  const fields = statFields(pid);
  return (Number(fields[11]) + Number(fields[12])) * NANOSECONDS_PER_TICK;
}

/** The fields of /proc/PID/stat from the third on; the second is a name that may hold spaces and parentheses. */
function statFields(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

export function residentBytes(pid: number): number {
  return kilobytesIn(`/proc/${pid}/status`, /^VmRSS:\s+(\d+) kB/m);
}

/** Memory of all descendants; pages that several processes share count once. */
export function descendantBytes(pid: number): number {
  return descendants(pid).reduce(
    (total, child) => total + kilobytesIn(`/proc/${child}/smaps_rollup`, /^Pss:\s+(\d+) kB/m),
    0,
  );
}

export function descendants(pid: number): number[] {
  const childrenOf = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const parent = Number(statFields(Number(name))[1]);
      childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), Number(name)]);
    } catch {
      // It exited meanwhile.
    }
  }
  const found: number[] = [];
  for (const pending = [pid]; pending.length > 0; ) {
    const children = childrenOf.get(pending.pop() as number) ?? [];
    found.push(...children);
    pending.push(...children);
  }
  return found;
}

function kilobytesIn(path: string, pattern: RegExp): number {
  try {
    return Number(pattern.exec(readFileSync(path, 'latin1'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Where processes run: measured ones on one CPU, the load and everything else on another. */
export interface Placement {
  measured(command: string[]): string[];
  other(command: string[]): string[];
  /** For children of measured processes. */
  moveToOther(pids: number[]): void;
  /** Unpins this process and all that it starts from now on. */
  release(): void;
  description: string;
}

export function placeProcesses(): Placement {
  const cpus = allowedCpus();
  const [first, second] = cpus;
  if (first === undefined || second === undefined || !pin(process.pid, second)) {
    return {
      measured: (command) => command,
      other: (command) => command,
      moveToOther() {},
      release() {},
      description: 'not pinned (needs taskset and two CPUs)',
    };
  }
  return {
    measured: (command) => [PIN_COMMAND, '-c', String(first), ...command],
    other: (command) => [PIN_COMMAND, '-c', String(second), ...command],
    moveToOther: (pids) => {
      for (const pid of pids) pin(pid, second);
    },
    release: () => void pin(process.pid, ...cpus),
    description: 'measured processes on one CPU, load and servers behind gateways on another',
  };
}

function allowedCpus(): number[] {
  const list = /^Cpus_allowed_list:\s+(\S+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [from = Number.NaN, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}

function pin(pid: number, ...cpus: number[]): boolean {
  try {
    execFileSync(PIN_COMMAND, ['-a', '-c', '-p', cpus.join(','), String(pid)], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

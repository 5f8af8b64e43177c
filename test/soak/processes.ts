import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The environment variable that identifies the processes of one run. */
export const MARKER = 'SOAK_RUN';

interface MarkedProcess {
  pid: number;
  parent: number;
  /** The name of a fixture; empty for all others. */
  name: string;
}

export function markedProcesses(marker: string): MarkedProcess[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      // A process may end meanwhile.
      const variables = read(`/proc/${entry}/environ`).split('\0');
      if (!variables.includes(`${MARKER}=${marker}`)) return [];
      const [, parent = '0'] = statusOf(entry);
      const named = variables.find((variable) => variable.startsWith('FIXTURE_NAME='));
      return [
        { pid: Number(entry), parent: Number(parent), name: named?.slice('FIXTURE_NAME='.length) ?? '' },
      ];
    });
}

/** Every child of a process, including zombies. */
export function childrenOf(pid: number): { pid: number; isZombie: boolean }[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      const [state, parent] = statusOf(entry);
      return Number(parent) === pid ? [{ pid: Number(entry), isZombie: state === 'Z' }] : [];
    });
}

export function openFilesOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

export function describeOpenFiles(pid: number): string {
  const kinds = new Map<string, number>();
  for (const file of readdirSync(`/proc/${pid}/fd`)) {
    const kind = targetOf(`/proc/${pid}/fd/${file}`).replace(/:?\[.*\]$/, '');
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  return [...kinds].map(([kind, count]) => `${count} ${kind}`).join(', ');
}

export function residentMegabytes(pid: number): number {
  const [, kilobytes = '0'] = /^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`)) ?? [];
  return Number(kilobytes) / 1024;
}

/** State and parent. The command before them may contain anything, even parentheses and spaces. */
function statusOf(pid: string): string[] {
  const stat = read(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ', 2);
}

function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return 'closed';
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

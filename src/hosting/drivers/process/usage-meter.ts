import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { runningIn } from '../../../channels/process-table.ts';
import { CpuMeter, type ResourceUsage } from '../../driver.ts';

interface Sum {
  cpuMs: number;
  memoryBytes: number;
}

/** USER_HZ, which is 100 on Linux whatever the kernel's clock. */
const MS_PER_TICK = 10;

export class UsageMeter {
  private readonly group: number;
  private readonly cpu = new CpuMeter();

  constructor(group: number) {
    this.group = group;
  }

  async read(): Promise<ResourceUsage> {
    const { cpuMs, memoryBytes } =
      process.platform === 'linux' ? readProc(this.group) : await askPs(this.group);
    return { cpuPercent: this.cpu.percent(cpuMs, performance.now()), memoryBytes, diskBytes: undefined };
  }
}

function readProc(group: number): Sum {
  const sum = { cpuMs: 0, memoryBytes: 0 };
  for (const pid of runningIn(group)) {
    try {
      const cpuMs = parseCpuMs(readFileSync(`/proc/${pid}/stat`, 'latin1'));
      sum.memoryBytes += parseResident(readFileSync(`/proc/${pid}/status`, 'latin1'));
      sum.cpuMs += cpuMs;
    } catch {
      // It has exited meanwhile.
    }
  }
  return sum;
}

/** Includes exited children, or the total would drop with each exit. */
export function parseCpuMs(stat: string): number {
  // The name may contain spaces and parentheses. proc(5) counts fields from 1, and two come before these.
  const afterName = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = [14, 15, 16, 17].reduce((total, field) => total + Number(afterName[field - 3]), 0);
  return ticks * MS_PER_TICK;
}

export function parseResident(status: string): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  return Number(kilobytes ?? 0) * 1024;
}

async function askPs(group: number): Promise<Sum> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pgid=', '-o', 'rss=', '-o', 'time='], {
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
  });
  return sumOfPs(stdout, group);
}

/** Lines such as `  501  10240 1-02:03:04.56`; days and hours are optional. */
export function sumOfPs(text: string, group: number): Sum {
  const sum = { cpuMs: 0, memoryBytes: 0 };
  for (const [, of, kilobytes, days, clock] of text.matchAll(
    /^[ \t]*(\d+)[ \t]+(\d+)[ \t]+(?:(\d+)-)?([\d:.]+)[ \t]*$/gm,
  )) {
    if (Number(of) !== group) continue;
    const seconds = clock!.split(':').reduce((total, part) => total * 60 + Number(part), 0);
    sum.cpuMs += (Number(days ?? 0) * 86_400 + seconds) * 1_000;
    sum.memoryBytes += Number(kilobytes) * 1024;
  }
  return sum;
}

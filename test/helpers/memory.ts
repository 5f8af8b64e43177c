import { readFileSync } from 'node:fs';

/** What a process has of memory now, or had at its peak, in MB. On Linux only. Throws where the process has ended. */
export function memoryOf(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)![1]) / 1024;
}

import { readFile } from 'node:fs/promises';

/** The most memory that a process has had so far, in MB. On Linux only. */
export async function peakMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+)/m.exec(status)![1]) / 1024;
}

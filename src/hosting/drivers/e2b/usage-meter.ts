import type { Sandbox } from 'e2b';
import { SwitchboardError } from '../../../errors.ts';
import type { ResourceUsage } from '../../driver.ts';
import { explain } from './sdk.ts';

const WINDOW_MS = 5 * 60_000;

export class UsageMeter {
  private readonly sandbox: Sandbox;
  private last: Date | undefined;

  constructor(sandbox: Sandbox) {
    this.sandbox = sandbox;
  }

  async read(): Promise<ResourceUsage> {
    const metrics = await this.fetchMetrics();
    const newest = metrics.at(-1);
    if (newest === undefined)
      throw new SwitchboardError('server_unavailable', 'E2B has no metrics yet: try again in a few seconds.');
    const { last } = this;
    this.last = newest.timestamp;
    const since = metrics.filter(({ timestamp }) => last === undefined || timestamp > last);
    return {
      cpuPercent: last && average((since.length > 0 ? since : [newest]).map(percentOfOneCore)),
      memoryBytes: newest.memUsed,
      diskBytes: newest.diskUsed,
    };
  }

  private async fetchMetrics() {
    try {
      const metrics = await this.sandbox.getMetrics({ start: new Date(Date.now() - WINDOW_MS) });
      return metrics.toSorted((a, b) => a.timestamp.getTime() - b.timestamp.getTime());
    } catch (error) {
      throw explain(error, 'report the usage of its sandbox');
    }
  }
}

/** E2B reports 100 for all cores together. */
function percentOfOneCore({ cpuUsedPct, cpuCount }: { cpuUsedPct: number; cpuCount: number }): number {
  return cpuUsedPct * cpuCount;
}

function average(numbers: number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

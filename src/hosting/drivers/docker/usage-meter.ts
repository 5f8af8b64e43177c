import { SwitchboardError } from '../../../errors.ts';
import { CpuMeter, type ResourceUsage } from '../../driver.ts';
import type { Engine } from './engine.ts';

interface Stats {
  read: string;
  cpu_stats: { cpu_usage: { total_usage: number } };
  memory_stats: { usage?: number; stats?: Record<string, number> };
}

export class UsageMeter {
  private readonly engine: Engine;
  private readonly id: string;
  private readonly cpu = new CpuMeter();

  constructor(engine: Engine, id: string) {
    this.engine = engine;
    this.id = id;
  }

  async read(): Promise<Omit<ResourceUsage, 'diskBytes'>> {
    const query = { stream: '0', 'one-shot': '1' };
    const stats = await this.engine.get<Stats>(`/containers/${this.id}/stats`, { query });
    // The engine reports no error for a container that has exited.
    if (stats.memory_stats.usage === undefined) {
      throw new SwitchboardError('server_unavailable', 'The container is not running.');
    }
    return {
      cpuPercent: this.cpu.percent(stats.cpu_stats.cpu_usage.total_usage / 1e6, Date.parse(stats.read)),
      memoryBytes: withoutPageCache(stats.memory_stats.usage, stats.memory_stats.stats ?? {}),
    };
  }
}

/** As `docker stats` does, without reclaimable memory. The first name is from cgroup v1. */
function withoutPageCache(usage: number, stats: Record<string, number>): number {
  const cache = stats.total_inactive_file ?? stats.inactive_file ?? 0;
  return cache < usage ? usage - cache : usage;
}

import { type Ask, type Engine, EngineRefusal } from './engine.ts';
import { containerLabels } from './options.ts';

export interface Listed {
  Id: string;
  /** In seconds since 1970. */
  Created: number;
  State: string;
  Labels: Record<string, string>;
}

export interface Inspected {
  State: { Running: boolean; Paused: boolean; OOMKilled: boolean; StartedAt: string };
  Config: { Labels: Record<string, string> };
  SizeRw?: number;
  Mounts: { Type: string; Name?: string }[];
  NetworkSettings: { Ports: Record<string, { HostIp: string; HostPort: string }[] | null> | null };
}

/** All containers with these labels: running ones first, then the newest. */
export async function listContainers(
  engine: Engine,
  labels: Partial<Record<keyof typeof containerLabels, string>>,
): Promise<Listed[]> {
  const label = Object.entries(labels).map(
    ([name, value]) => `${containerLabels[name as keyof typeof containerLabels]}=${value}`,
  );
  const query = { all: '1', filters: JSON.stringify({ label }) };
  const found = await engine.get<Listed[]>('/containers/json', { query });
  return found.toSorted((a, b) => Number(isRunning(b)) - Number(isRunning(a)) || b.Created - a.Created);
}

export function isRunning({ State }: Listed): boolean {
  return State === 'running';
}

export function inspectContainer(engine: Engine, id: string, ask: Ask = {}): Promise<Inspected> {
  return engine.get<Inspected>(`/containers/${id}/json`, ask);
}

/** Removes a container, even a running one, and its anonymous volumes. Resolves when it is gone, whoever removed it. */
export async function removeContainer(engine: Engine, id: string): Promise<void> {
  try {
    await engine.delete(`/containers/${id}`, { query: { force: '1', v: '1' } });
  } catch (error) {
    if (isGone(error)) return;
    if (!(error instanceof EngineRefusal) || error.status !== 409) throw error;
    // It is already being removed.
    await engine
      .post(`/containers/${id}/wait`, {
        query: { condition: 'removed' },
        signal: AbortSignal.timeout(10_000),
      })
      .catch((reason: unknown) => {
        if (!isGone(reason)) throw error;
      });
  }
}

export function isGone(error: unknown): boolean {
  return error instanceof EngineRefusal && error.status === 404;
}

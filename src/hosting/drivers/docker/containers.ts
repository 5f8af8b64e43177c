import { text } from 'node:stream/consumers';
import { type Ask, type Engine, EngineAway, EngineRefusal } from './engine.ts';
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

/** Running ones first, then the newest. */
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

/** Also removes a running container, and its anonymous volumes. Resolves when it is gone, even if something else removed it. */
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

export class ExitWaiter {
  /** Rejects if the connection to the engine breaks. */
  readonly exitCode: Promise<number>;
  private readonly engine: Engine;
  private readonly id: string;
  private readonly controller = new AbortController();
  private readonly begun: Promise<unknown>;

  private constructor(engine: Engine, id: string, condition: 'next-exit' | 'not-running') {
    this.engine = engine;
    this.id = id;
    const answer = engine.stream('POST', `/containers/${id}/wait`, {
      query: { condition },
      signal: this.controller.signal,
    });
    this.begun = answer;
    this.exitCode = answer.then(async (response) => {
      const body = await text(response);
      if (!response.complete || body === '') throw new EngineAway('The engine closed the connection.');
      return (JSON.parse(body) as { StatusCode: number }).StatusCode;
    });
    // Handled where it is awaited.
    this.exitCode.catch(() => {});
  }

  /** Resolves when the engine waits, so that no exit can be missed. */
  static async beforeStart(engine: Engine, id: string): Promise<ExitWaiter> {
    const waiter = new ExitWaiter(engine, id, 'next-exit');
    await waiter.begun;
    return waiter;
  }

  /** Reports an earlier exit too. */
  static whileRunning(engine: Engine, id: string): ExitWaiter {
    return new ExitWaiter(engine, id, 'not-running');
  }

  again(): ExitWaiter {
    return ExitWaiter.whileRunning(this.engine, this.id);
  }

  stop(): void {
    this.controller.abort();
  }
}

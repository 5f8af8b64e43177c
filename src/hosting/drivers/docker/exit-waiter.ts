import { text } from 'node:stream/consumers';
import { type Engine, EngineAway } from './engine.ts';

/** Waits for the exit of a container. */
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
      if (!response.complete || body === '') throw new EngineAway('The engine broke off its answer.');
      return (JSON.parse(body) as { StatusCode: number }).StatusCode;
    });
    // It is awaited later.
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

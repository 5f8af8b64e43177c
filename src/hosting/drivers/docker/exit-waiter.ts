import { text } from 'node:stream/consumers';
import { type Engine, EngineAway } from './engine.ts';

/** Waits for the end of a container. */
export class ExitWaiter {
  /** Rejects where the connection to the engine breaks. */
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
    // Whoever is interested looks at it later.
    this.exitCode.catch(() => {});
  }

  /** For one that is yet to be started: settles when no end of it can be missed any more. */
  static async beforeStart(engine: Engine, id: string): Promise<ExitWaiter> {
    const waiter = new ExitWaiter(engine, id, 'next-exit');
    await waiter.begun;
    return waiter;
  }

  /** For one that runs; where it has ended already, that is told. */
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

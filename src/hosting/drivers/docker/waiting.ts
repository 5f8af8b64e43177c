import { text } from 'node:stream/consumers';
import { type Engine, EngineAway } from './engine.ts';

/** Waits for the end of a container. */
export class Waiting {
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
  static async beforeStart(engine: Engine, id: string): Promise<Waiting> {
    const waiting = new Waiting(engine, id, 'next-exit');
    await waiting.begun;
    return waiting;
  }

  /** For one that runs; where it has ended already, that is told. */
  static whileRunning(engine: Engine, id: string): Waiting {
    return new Waiting(engine, id, 'not-running');
  }

  again(): Waiting {
    return Waiting.whileRunning(this.engine, this.id);
  }

  stop(): void {
    this.controller.abort();
  }
}

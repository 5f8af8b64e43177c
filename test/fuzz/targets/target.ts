import type { Cases } from '../cases.ts';
import type { Findings } from '../findings.ts';

/** What every target is given. */
export interface Ground {
  port: number;
  cases: Cases;
  findings: Findings;
  /** Reports a finished case and its outcome. */
  done(index: number, outcome: string): void;
  /** Prints what a case sends and gets; only where one is run again. */
  tell: ((what: string) => void) | undefined;
  /** The case that each lane is at. */
  underWay: Map<string, number>;
}

/** Many at once, each taking the next case when it is done with one. */
export async function inLanes(
  lanes: number,
  indexes: Iterator<number, void>,
  run: (lane: number, index: number) => Promise<void>,
): Promise<void> {
  await Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      for (;;) {
        const next = indexes.next();
        if (next.done) return;
        await run(lane, next.value);
      }
    }),
  );
}

import type { Cases } from '../cases.ts';
import type { Findings } from '../findings.ts';

export interface Ground {
  port: number;
  cases: Cases;
  findings: Findings;
  /** Reports a finished case and its outcome. */
  done(index: number, outcome: string): void;
  /** Prints the input and output of a case that is repeated. */
  tell: ((what: string) => void) | undefined;
  /** The current case of each lane. */
  underWay: Map<string, number>;
}

/** Runs concurrent lanes, each of which takes the next free case. */
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

import { caseRandom, weighted } from './generators/random.ts';

export type TargetName = 'front' | 'upstream' | 'api';

/** The share of each target in a full run, by its speed. */
const shares = [
  [75, 'front'],
  [20, 'upstream'],
  [5, 'api'],
] as const;

/** Maps case numbers to targets. */
export class Cases {
  readonly seed: number;
  readonly first: number;
  readonly end: number;
  private readonly only: TargetName | undefined;

  constructor(seed: number, first: number, end: number, only: TargetName | undefined) {
    this.seed = seed;
    this.first = first;
    this.end = end;
    this.only = only;
  }

  targetOf(index: number): TargetName {
    return this.only ?? weighted(caseRandom(this.seed, index, 1), shares);
  }

  /** The case numbers of one target; concurrent lanes share them. */
  *of(target: TargetName): Generator<number, void> {
    for (let index = this.first; index < this.end; index++) {
      if (this.targetOf(index) === target) yield index;
    }
  }
}

import { caseRandom, weighted } from './generators/random.ts';

export type TargetName = 'front' | 'upstream' | 'api';

/** How often each comes where all are meant: as their speed allows. */
const shares = [
  [75, 'front'],
  [20, 'upstream'],
  [5, 'api'],
] as const;

/** Which cases there are, and which target each belongs to. */
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

  /** The indexes of one target, each once, whoever takes them. */
  *of(target: TargetName): Generator<number, void> {
    for (let index = this.first; index < this.end; index++) {
      if (this.targetOf(index) === target) yield index;
    }
  }
}

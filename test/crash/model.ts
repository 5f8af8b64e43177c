import { isDeepStrictEqual } from 'node:util';
import type { Random } from '../soak/random.ts';
import { type Change, nextChange, units, type Value } from './units.ts';

/** The allowed states: the last acknowledged state of each unit, or one that was requested without a response. */
export class Model {
  acknowledged = 0;
  /** How many changes without a response have happened. */
  readonly unanswered = { made: 0, notMade: 0 };
  private readonly values = new Map<string, Value>();
  private readonly pending = new Map<string, Change>();
  private readonly random: Random;
  private lastMark = 0;

  constructor(random: Random) {
    this.random = random;
  }

  /** A change to a unit that no other change touches concurrently. */
  begin(): Change {
    const free = units.filter(({ unit }) => !this.pending.has(unit));
    this.lastMark += 1;
    const change = nextChange(free, (unit) => this.values.get(unit), `m${this.lastMark}`, this.random);
    this.pending.set(change.unit, change);
    return change;
  }

  acknowledge({ unit, after }: Change): void {
    this.pending.delete(unit);
    this.set(unit, after);
    this.acknowledged += 1;
  }

  /** Returns the differences from the allowed states, and continues from what was found. */
  compare(found: Map<string, Value>): { unit: string; found: Value; allowed: Value[] }[] {
    const names = new Set([...units.map(({ unit }) => unit), ...found.keys()]);
    const wrong = [...names].flatMap((unit) => {
      const allowed = [this.values.get(unit)];
      const change = this.pending.get(unit);
      if (change !== undefined) allowed.push(change.after);
      const value = found.get(unit);
      return allowed.some((candidate) => isDeepStrictEqual(candidate, value))
        ? []
        : [{ unit, found: value, allowed }];
    });
    for (const [unit, { after }] of this.pending) {
      if (isDeepStrictEqual(found.get(unit), after)) this.unanswered.made += 1;
      else this.unanswered.notMade += 1;
    }
    this.pending.clear();
    for (const unit of names) this.set(unit, found.get(unit));
    return wrong;
  }

  private set(unit: string, value: Value): void {
    if (value === undefined) this.values.delete(unit);
    else this.values.set(unit, value);
  }
}

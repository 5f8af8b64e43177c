import type { Actor } from '../store/audit/append.ts';

export interface NewDenial {
  readonly actor: Actor;
  readonly outcome: 'denied' | 'refused';
  readonly action: string;
  readonly project: { readonly id: string; readonly name: string } | undefined;
  readonly subject: string | undefined;
  readonly ruleId: string | undefined;
}

/** Equal denials within the time between two writes are one entry with a count. */
export interface CountedDenial extends NewDenial {
  count: number;
}

/** Of different denials with their details. */
const MAX_DETAILED = 1_000;
/** Of one actor, at one address, for one action. */
const MAX_PER_ADDRESS = 50;
/** Of one actor, for one action: also bounds the addresses of those whom nobody knows. */
const MAX_PER_ACTION = 100;
/** These are kept even if others have filled the queue. */
const SURE_PER_ACTION = 5;
/** The subject of those without details. */
const AND_MORE = 'and more';

/**
 * Denials between two writes. What does not fit into somebody's share is counted for each action without details, so that
 * nobody can hide one action behind many others, neither their own nor another's.
 */
export class DenialQueue {
  private readonly detailed = new Map<string, CountedDenial>();
  private readonly merged = new Map<string, CountedDenial>();
  private readonly shares = new Map<string, number>();

  get size(): number {
    return this.detailed.size + this.merged.size;
  }

  entries(): CountedDenial[] {
    return [...this.detailed.values(), ...this.merged.values()];
  }

  /** Returns whether its details are kept. */
  add(denial: NewDenial, count = 1): boolean {
    const { actor, outcome, action, project, subject, ruleId } = denial;
    const address = [actor.kind, actor.id, actor.address, action];
    const key = JSON.stringify([...address, outcome, project?.id, subject, ruleId]);
    const known = this.detailed.get(key);
    if (known !== undefined) {
      known.count += count;
      return true;
    }
    const shares = [JSON.stringify(address), JSON.stringify([actor.kind, actor.id, action])] as const;
    if (!this.hasRoom(...shares)) {
      this.merge(denial, count);
      return false;
    }
    for (const share of shares) this.shares.set(share, this.shareOf(share) + 1);
    this.detailed.set(key, { ...denial, count });
    return true;
  }

  /** Adds those of a later queue. Returns how many denials lose their details. */
  addAll(later: DenialQueue): number {
    let lost = 0;
    for (const denial of later.detailed.values()) if (!this.add(denial, denial.count)) lost += denial.count;
    for (const denial of later.merged.values()) this.merge(denial, denial.count);
    return lost;
  }

  private hasRoom(ofAddress: string, ofAction: string): boolean {
    if (this.shareOf(ofAddress) >= MAX_PER_ADDRESS || this.shareOf(ofAction) >= MAX_PER_ACTION) return false;
    return this.detailed.size < MAX_DETAILED || this.shareOf(ofAction) < SURE_PER_ACTION;
  }

  private shareOf(share: string): number {
    return this.shares.get(share) ?? 0;
  }

  private merge({ actor, outcome, action, project }: NewDenial, count: number): void {
    const key = JSON.stringify([actor.kind, actor.id, outcome, action, project?.id]);
    const known = this.merged.get(key);
    if (known === undefined) {
      const entry = { actor, outcome, action, project, subject: AND_MORE, ruleId: undefined, count };
      this.merged.set(key, entry);
      return;
    }
    known.count += count;
    if (known.actor.address === actor.address) return;
    this.merged.set(key, { ...known, actor: { ...known.actor, address: undefined } });
  }
}

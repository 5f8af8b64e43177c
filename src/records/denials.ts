import type { Actor } from '../store/audit/append.ts';
import { BackgroundWriter } from './background-writer.ts';

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

const WRITE_MS = 200;
const RETRY_MS = 5_000;
/** More different ones between two writes are counted, and lost. */
const MAX_QUEUED = 1_000;
const LONGEST_SUBJECT = 500;

/** Writes denials to the audit log in the background, so that they cost callers and attackers no database access. */
export class Denials {
  private readonly write: (denials: readonly CountedDenial[]) => Promise<void>;
  private queued = new Map<string, CountedDenial>();
  private readonly writer = new BackgroundWriter(() => this.writeQueued(), WRITE_MS, RETRY_MS);
  dropped = 0;

  constructor(write: (denials: readonly CountedDenial[]) => Promise<void>) {
    this.write = write;
  }

  add(denial: NewDenial): void {
    const subject = denial.subject?.slice(0, LONGEST_SUBJECT);
    const { actor, outcome, action, project, ruleId } = denial;
    const key = JSON.stringify([
      actor.kind,
      actor.id,
      actor.address,
      outcome,
      action,
      project?.id,
      subject,
      ruleId,
    ]);
    const known = this.queued.get(key);
    if (known !== undefined) known.count++;
    else if (this.queued.size >= MAX_QUEUED) this.dropped++;
    else this.queued.set(key, { ...denial, subject, count: 1 });
    this.writer.schedule();
  }

  async close(): Promise<void> {
    await this.writer.close();
  }

  private async writeQueued(): Promise<void> {
    if (this.queued.size === 0) return;
    const batch = this.queued;
    this.queued = new Map();
    try {
      await this.write([...batch.values()]);
    } catch (error) {
      for (const [key, denial] of batch) {
        const again = this.queued.get(key);
        if (again !== undefined) again.count += denial.count;
        else if (this.queued.size >= MAX_QUEUED) this.dropped += denial.count;
        else this.queued.set(key, denial);
      }
      throw error;
    }
  }
}

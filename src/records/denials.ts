import { maskedSubject } from '../store/audit/mask.ts';
import { BackgroundWriter } from './background-writer.ts';
import { type CountedDenial, DenialQueue, type NewDenial } from './denial-queue.ts';

const WRITE_MS = 200;
const RETRY_MS = 5_000;

/** Writes denials to the audit log in the background, so that they cost callers and attackers no database access. */
export class Denials {
  private readonly write: (denials: readonly CountedDenial[]) => Promise<void>;
  private queue = new DenialQueue();
  private readonly writer = new BackgroundWriter(() => this.writeQueued(), WRITE_MS, RETRY_MS);
  /** Denials that are counted in the log without their details. */
  merged = 0;

  constructor(write: (denials: readonly CountedDenial[]) => Promise<void>) {
    this.write = write;
  }

  /** Entries that are not yet in the log. */
  get queued(): number {
    return this.queue.size;
  }

  add(denial: NewDenial): void {
    const subject = denial.subject === undefined ? undefined : maskedSubject(denial.subject);
    if (!this.queue.add({ ...denial, subject })) this.merged++;
    this.writer.schedule();
  }

  async close(): Promise<void> {
    await this.writer.close();
  }

  private async writeQueued(): Promise<void> {
    const batch = this.queue;
    if (batch.size === 0) return;
    this.queue = new DenialQueue();
    try {
      await this.write(batch.entries());
    } catch (error) {
      // The older ones first, which have been waiting for longer.
      this.merged += batch.addAll(this.queue);
      this.queue = batch;
      throw error;
    }
  }
}

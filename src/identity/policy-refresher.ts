import type { AccessState, Policy } from './policy.ts';

const RETRY_MS = 1_000;

/** Applies the stored facts about access. Reads run one at a time, so that older facts never replace newer ones. */
export class PolicyRefresher {
  private readonly read: () => Promise<AccessState>;
  private readonly policy: Policy;
  private queued: Promise<void> | undefined;
  private last: Promise<void> = Promise.resolve();
  private retry: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(read: () => Promise<AccessState>, policy: Policy) {
    this.read = read;
    this.policy = policy;
  }

  /** Resolves when everything that was committed before this call is applied. */
  refresh(): Promise<void> {
    if (this.queued !== undefined) return this.queued;
    const turn = this.last.then(async () => {
      this.queued = undefined;
      this.policy.apply(await this.read());
    });
    this.queued = turn;
    this.last = turn.catch(() => {});
    return turn;
  }

  /** Retries until it succeeds. */
  follow(): void {
    this.refresh().catch(() => {
      if (this.isClosed) return;
      clearTimeout(this.retry);
      this.retry = setTimeout(() => this.follow(), RETRY_MS).unref();
    });
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.retry);
  }
}

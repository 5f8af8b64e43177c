import type { SwitchboardError } from '../errors.ts';

/** A restart by hand, which everybody who asks for it meanwhile shares. */
export class RestartRequest {
  private waiting: PromiseWithResolvers<void> | undefined;
  private isUnmet = false;

  /** Whether a new instance is still to be started for it. */
  get isOpen(): boolean {
    return this.isUnmet;
  }

  ask(): void {
    this.isUnmet = true;
    if (this.waiting !== undefined) return;
    this.waiting = Promise.withResolvers();
    // Whoever asked may have gone.
    this.waiting.promise.catch(() => {});
  }

  /** Settles when the new instance is ready, or fails with why it is not. */
  get outcome(): Promise<void> {
    return this.waiting?.promise ?? Promise.resolve();
  }

  /** The new instance runs. */
  started(): void {
    this.isUnmet = false;
  }

  settle(problem: SwitchboardError | undefined): void {
    const { waiting } = this;
    this.isUnmet = false;
    this.waiting = undefined;
    if (problem === undefined) waiting?.resolve();
    else waiting?.reject(problem);
  }
}

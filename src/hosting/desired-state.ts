import type { SwitchboardError } from '../errors.ts';
import type { HostedServer } from './condition.ts';
import type { InstanceSpec } from './driver.ts';

export const CHANGED = 'It was changed.';
export const DISABLED = 'It is switched off.';

/** What a hosted server should be. `Hosted` changes it, `Reconciler` acts on it. */
export class DesiredState {
  server: HostedServer;
  /** `remove` can be taken back; `shutdown` and `release` are final. */
  goal: 'run' | 'remove' | 'shutdown' | 'release' = 'run';
  /** Why it should not run. */
  stopReason: string | undefined;
  readonly restart = new RestartRequest();

  constructor(server: HostedServer) {
    this.server = server;
    this.stopReason = server.enabled ? undefined : DISABLED;
  }

  get shouldRun(): boolean {
    return this.goal === 'run' && this.server.enabled;
  }

  get isFinal(): boolean {
    return this.goal === 'shutdown' || this.goal === 'release';
  }

  /** Undefined if a secret is missing; the start reports that. */
  findSpec(): InstanceSpec | undefined {
    try {
      return this.server.spec();
    } catch {
      return undefined;
    }
  }
}

/** A restart that a user requested. Requests made before it settles share it. */
class RestartRequest {
  private waiting: PromiseWithResolvers<void> | undefined;
  private needsStart = false;

  /** Whether a new instance must still be started for it. */
  get isPending(): boolean {
    return this.needsStart;
  }

  /** Resolves when the new instance is ready, rejects with the reason why it is not. */
  get outcome(): Promise<void> {
    return this.waiting?.promise ?? Promise.resolve();
  }

  request(): void {
    this.needsStart = true;
    if (this.waiting !== undefined) return;
    this.waiting = Promise.withResolvers();
    // The requester may no longer be listening.
    this.waiting.promise.catch(() => {});
  }

  started(): void {
    this.needsStart = false;
  }

  settle(problem: SwitchboardError | undefined): void {
    const { waiting } = this;
    this.needsStart = false;
    this.waiting = undefined;
    if (problem === undefined) waiting?.resolve();
    else waiting?.reject(problem);
  }
}

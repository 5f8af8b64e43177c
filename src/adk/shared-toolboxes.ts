import type { Toolbox } from '../agent/toolbox.ts';

export interface Lease {
  toolbox: Toolbox;
  /** Resolves when everything is closed that has no other users. */
  release(): Promise<void>;
}

/** Toolboxes with several users: opened for the first one, and stopped after the last. */
export class SharedToolboxes {
  private readonly open = new Map<string, { toolbox: Toolbox; users: number }>();

  lease(key: string, create: () => Toolbox): Lease {
    const shared = this.open.get(key) ?? { toolbox: create(), users: 0 };
    this.open.set(key, shared);
    shared.users++;
    let released: Promise<void> | undefined;
    const release = async () => {
      shared.users--;
      if (shared.users > 0) return;
      // The next user gets a new toolbox instead of waiting for this one to stop.
      this.open.delete(key);
      await shared.toolbox.stop();
    };
    return {
      toolbox: shared.toolbox,
      release: () => {
        released ??= release();
        return released;
      },
    };
  }
}

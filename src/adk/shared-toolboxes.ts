import type { Toolbox } from '../agent/toolbox.ts';

/** The use of a toolbox, until it is given back. */
export interface Lease {
  toolbox: Toolbox;
  /** Settles when everything is closed that nobody else uses. */
  release(): Promise<void>;
}

/** Toolboxes that several use at a time. Each is opened for the first who wants it, and stopped after the last. */
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
      // Whoever comes from now on gets a new one, and does not wait for the end of this one.
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

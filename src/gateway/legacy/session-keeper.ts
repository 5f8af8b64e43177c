import type { SessionFacts } from './caller.ts';

/** What of a session is worth knowing after a restart. */
export interface KeptSession {
  /** The project that it was opened for; undefined: all of them. */
  project: string | undefined;
  facts: SessionFacts;
  logLevel: string | undefined;
  /** When it was shown its first list. */
  listedAt?: number | undefined;
  /** The keys of what it follows. */
  followed: string[];
}

/** Keeps sessions over a restart. */
export interface SessionKeeper {
  /** A session was opened, or what it asked for is another. It is described when it is written. */
  keep(id: string, describe: () => KeptSession): void;
  forget(id: string): void;
  /** Settles when what was forgotten is so after a restart too, or after a while; undefined where it is already. Never fails. */
  forgotten(): Promise<void> | undefined;
  /** What was kept of it before this start, once. */
  recall(id: string): KeptSession | undefined;
}

/** Without a database nothing is kept. */
export const keepsNothing: SessionKeeper = {
  keep() {},
  forget() {},
  forgotten: () => undefined,
  recall: () => undefined,
};

import type { Session, SessionFacts } from './caller.ts';

/** The state of a session that survives a restart. */
export interface PersistedSession {
  /** The project that it was opened for; undefined for all. */
  project: string | undefined;
  facts: SessionFacts;
  logLevel: string | undefined;
  listedAt?: number | undefined;
  /** The keys of its subscriptions. */
  followed: string[];
}

/** Persists sessions over a restart. */
export interface SessionPersistence {
  /** Saves a new or changed session. It is described when it is written. */
  save(id: string, describe: () => PersistedSession): void;
  delete(id: string): void;
  /** Resolves when deletions are in the database, or after a while; undefined if they are. Never rejects. */
  deleted(): Promise<void> | undefined;
  /** Takes a session from before the restart. */
  take(id: string): PersistedSession | undefined;
}

/** Without a database nothing is persisted. */
export const noPersistence: SessionPersistence = {
  save() {},
  delete() {},
  deleted: () => undefined,
  take: () => undefined,
};

/** How many characters of subscriptions are persisted. */
const MAX_CHARACTERS = 64 * 1024;

export function stateOf({ facts, scope, logLevel, listedAt, subscriptions }: Session): PersistedSession {
  const followed: string[] = [];
  let left = MAX_CHARACTERS;
  for (const key of subscriptions.keys()) {
    left -= key.length;
    if (left < 0) break;
    followed.push(key);
  }
  return { project: scope.project?.id, facts, logLevel, listedAt, followed };
}

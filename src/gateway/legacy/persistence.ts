import type { Session, SessionFacts } from './caller.ts';

export interface PersistedSession {
  /** Undefined for all projects. */
  project: string | undefined;
  facts: SessionFacts;
  logLevel: string | undefined;
  listedAt?: number | undefined;
  followed: string[];
}

export interface SessionPersistence {
  /** `describe` is called when the session is written. */
  save(id: string, describe: () => PersistedSession): void;
  delete(id: string): void;
  /** Resolves when deletions are in the database, or after a while; undefined if none is pending. Never rejects. */
  deleted(): Promise<void> | undefined;
  take(id: string): PersistedSession | undefined;
}

export const noPersistence: SessionPersistence = {
  save() {},
  delete() {},
  deleted: () => undefined,
  take: () => undefined,
};

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

import type { Principal } from '../../identity/principal.ts';
import type { Session, SessionFacts } from './caller.ts';

export interface PersistedSession {
  /** Undefined for all projects. */
  project: string | undefined;
  /** Its id; undefined for the local user. */
  principal?: string | undefined;
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
  /** Undefined for a session of another principal, which stays. */
  take(id: string, principal: string | undefined): PersistedSession | undefined;
}

export const noPersistence: SessionPersistence = {
  save() {},
  delete() {},
  deleted: () => undefined,
  take: () => undefined,
};

const MAX_CHARACTERS = 64 * 1024;

/** The principal of a stored session: undefined for the local user, as before there were others. */
export function storedOwner({ kind, id }: Principal): string | undefined {
  return kind === 'local' ? undefined : id;
}

export function stateOf({
  principal,
  facts,
  scope,
  logLevel,
  listedAt,
  subscriptions,
}: Session): PersistedSession {
  const followed: string[] = [];
  let left = MAX_CHARACTERS;
  for (const key of subscriptions.keys()) {
    left -= key.length;
    if (left < 0) break;
    followed.push(key);
  }
  const owner = storedOwner(principal);
  return { project: scope.project?.id, principal: owner, facts, logLevel, listedAt, followed };
}

import type { Session, SessionFacts } from './caller.ts';

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

/** So much of what a session follows is known after a restart. */
const KEPT_CHARACTERS = 64 * 1024;

/** What of a session is known after a restart. */
export function stateToKeep({ facts, scope, logLevel, listedAt, subscriptions }: Session): KeptSession {
  return {
    project: scope.project?.id,
    facts,
    logLevel,
    listedAt,
    followed: firstOf(subscriptions.keys(), KEPT_CHARACTERS),
  };
}

/** As many texts as have so many characters together. */
function firstOf(texts: Iterable<string>, characters: number): string[] {
  const taken: string[] = [];
  let left = characters;
  for (const text of texts) {
    left -= text.length;
    if (left < 0) break;
    taken.push(text);
  }
  return taken;
}

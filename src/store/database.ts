import { type Actor, type AuditedChange, appendEntries, type NewAuditEntry, system } from './audit/append.ts';
import type { Changes, Connections, Queries } from './connections.ts';

export type { Changes, Queries } from './connections.ts';

/** Notes a change for the audit log. */
export type Audit = (change: AuditedChange) => void;

/** The database as one actor uses it. */
export class Database {
  private readonly connections: Connections;
  private readonly actor: Actor;

  constructor(connections: Connections, actor: Actor = system) {
    this.connections = connections;
    this.actor = actor;
  }

  by(actor: Actor): Database {
    return new Database(this.connections, actor);
  }

  /** Runs one statement in autocommit mode. */
  run<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.connections.run(work);
  }

  /** Runs several queries on one snapshot. */
  readTogether<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.connections.readTogether(work);
  }

  /** Runs a transaction, which ends with the entries for the audit log: they are as certain as the changes. */
  write<Result>(work: (changes: Changes, audit: Audit) => Promise<Result>): Promise<Result> {
    return this.connections.write(async (changes) => {
      const entries: NewAuditEntry[] = [];
      const result = await work(changes, (change) => entries.push({ actor: this.actor, ...change }));
      await appendEntries(changes, entries);
      return result;
    });
  }
}

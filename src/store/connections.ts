import { setTimeout as delay } from 'node:timers/promises';
import { Kysely, PostgresDialect, type Transaction } from 'kysely';
import pg from 'pg';
import { CONNECT_TIMEOUT_MS, clientConfig, cutClient, type DatabaseAddress } from './client.ts';
import { codeOf, isUnavailable, translate, unavailable } from './failure.ts';
import type { DB } from './schema.ts';

export type Queries = Kysely<DB>;
export type Changes = Transaction<DB>;

const STATEMENT_TIMEOUT_MS = 30_000;
const CLOSE_TIMEOUT_MS = 2_000;
/** Serialization failure and deadlock: the transaction was rolled back and can be retried. */
const retriedCodes = new Set(['40001', '40P01']);
const ATTEMPTS = 3;

interface DatabaseEvents {
  /** Why the database is unavailable, if it is known to be. */
  outage(): string | undefined;
  /** A query failed as if the database was unavailable. */
  suspected(): void;
}

class PoolClient extends pg.Client {
  constructor(given?: string | pg.ClientConfig) {
    const config = given as pg.ClientConfig;
    // The pool makes `password` non-enumerable, so the spread does not copy it.
    super({ ...config, password: config.password, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  }
}

/** A pool of connections. While the database is known to be unavailable, every query fails immediately. */
export class Connections {
  readonly address: DatabaseAddress;
  private readonly events: DatabaseEvents;
  private readonly pool: pg.Pool;
  private readonly kysely: Kysely<DB>;
  private readonly clients = new Set<pg.PoolClient>();

  constructor(address: DatabaseAddress, events: DatabaseEvents) {
    this.address = address;
    this.events = events;
    this.pool = new pg.Pool({
      ...clientConfig(address),
      max: 5,
      // Waiting for a free connection may take long; only opening one has the short timeout of PoolClient.
      connectionTimeoutMillis: STATEMENT_TIMEOUT_MS,
      Client: PoolClient,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      query_timeout: STATEMENT_TIMEOUT_MS + CONNECT_TIMEOUT_MS,
      idleTimeoutMillis: 30_000,
    });
    // The pool removes the connection. Without a listener, the process would end.
    this.pool.on('error', () => this.events.suspected());
    this.pool.on('connect', (client) => {
      this.clients.add(client);
      // The pool only handles errors of idle connections.
      client.on('error', () => {});
    });
    this.pool.on('remove', (client) => this.clients.delete(client));
    const dialect = new PostgresDialect({ pool: this.pool });
    this.kysely = new Kysely<DB>({ dialect }).withSchema('kb');
  }

  /** Runs one statement in autocommit mode. */
  run<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.attempt(() => work(this.kysely));
  }

  /** Runs several queries on one snapshot. */
  readTogether<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.attempt(() =>
      this.kysely
        .transaction()
        .setIsolationLevel('repeatable read')
        .setAccessMode('read only')
        .execute((transaction) => work(transaction.withSchema('kb'))),
    );
  }

  /** Runs a transaction. */
  write<Result>(work: (changes: Changes) => Promise<Result>): Promise<Result> {
    return this.attempt(async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          // Whatever the server's default is: those who wait for a lock must see what its last owner wrote.
          return await this.kysely
            .transaction()
            .setIsolationLevel('read committed')
            .execute((transaction) => work(transaction.withSchema('kb') as Changes));
        } catch (error) {
          if (attempt === ATTEMPTS || !retriedCodes.has(codeOf(error) ?? '')) throw error;
        }
      }
    });
  }

  /** Closes all connections without waiting for the server. */
  cut(): void {
    for (const client of this.clients) cutClient(client);
  }

  async close(): Promise<void> {
    const timer = new AbortController();
    const late = delay(CLOSE_TIMEOUT_MS, undefined, { signal: timer.signal }).then(
      () => this.cut(),
      () => {},
    );
    await Promise.race([this.kysely.destroy(), late]);
    timer.abort();
  }

  private async attempt<Result>(work: () => Promise<Result>): Promise<Result> {
    const { label } = this.address;
    const outage = this.events.outage();
    if (outage !== undefined) throw unavailable(label, outage);
    try {
      return await work();
    } catch (error) {
      if (isUnavailable(error)) this.events.suspected();
      throw translate(error, label);
    }
  }
}

import { hkdfSync } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { SwitchboardError } from '../errors.ts';
import type { AccessTable } from './access.ts';
import type { Actor } from './audit/append.ts';
import type { AuditTable } from './audit.ts';
import type { CallTable } from './calls.ts';
import { addressOf, type DatabaseAddress, endClient, newClient } from './client.ts';
import { Connections } from './connections.ts';
import type { MoveCredentials } from './credentials.ts';
import { Database } from './database.ts';
import { type EmbeddedOptions, type EmbeddedPostgres, startEmbedded } from './embedded.ts';
import { isUnavailable, reasonOf } from './failure.ts';
import { HostLock } from './host-lock.ts';
import { type Keyring, openKeyring } from './keyring.ts';
import { NotificationListener } from './listener.ts';
import { migrate } from './migrate.ts';
import type { ProductTable } from './products.ts';
import type { ProjectTable } from './projects.ts';
import { FormerNamesTable, OfferTable, SessionTable } from './restart-state.ts';
import type { RunTable } from './runs.ts';
import type { SecretTable } from './secrets.ts';
import type { ServerTable } from './servers.ts';
import { Tables } from './tables.ts';
import type { WorkspaceTable } from './workspaces.ts';

const PATIENCE_MS = 30_000;
const RETRY_MS = 500;
const AUDIT_DAYS = 365;
/** A notification about something else is the id of a project. */
const ACCESS = 'access';

export interface StoreOptions extends EmbeddedOptions {
  /** postgres://…; undefined for the embedded PostgreSQL in `home`. */
  url: string | undefined;
  /** SWITCHBOARD_SECRET_KEY; undefined for the key file in `home`. */
  secretKey: string | undefined;
  /** Moves credentials of servers to secrets; undefined leaves them in place. */
  moveCredentials?: MoveCredentials;
  /** How long entries of the audit log are kept; a year by default. */
  auditDays?: number;
  events: EmbeddedOptions['events'] & {
    /** `reason`: why the database is unavailable. */
    connectionChanged(isConnected: boolean, reason: string | undefined): void;
  };
}

/** Starts the embedded PostgreSQL if needed, connects and migrates. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { url, home, secretKey, events } = options;
  const keyring = openKeyring(home, secretKey, events.warned);
  const given = url === undefined ? undefined : addressOf(url);
  const embedded = given === undefined ? await startEmbedded(options) : undefined;
  try {
    const address = given ?? embedded!.address;
    await prepare(address, options);
    const store = new Store(address, keyring, embedded, options);
    await store.start();
    return store;
  } catch (error) {
    await embedded?.stop();
    throw error;
  }
}

/**
 * The tables of the database. A change is committed when its promise resolves. It fails with `version_conflict` if
 * `expectedVersion` is given and is not the version of the row.
 */
export class Store {
  readonly projects: ProjectTable;
  readonly servers: ServerTable;
  readonly hosted: WorkspaceTable;
  readonly products: ProductTable;
  readonly secrets: SecretTable;
  readonly access: AccessTable;
  readonly audit: AuditTable;
  readonly calls: CallTable;
  readonly runs: RunTable;
  readonly offers: OfferTable;
  readonly sessions: SessionTable;
  readonly formerNames: FormerNamesTable;
  private readonly address: DatabaseAddress;
  private readonly keyring: Keyring;
  private readonly embedded: EmbeddedPostgres | undefined;
  private readonly options: StoreOptions;
  private readonly listener: NotificationListener;
  private readonly connections: Connections;
  private readonly database: Database;
  private readonly tables: Tables;
  private readonly subscribers = new Set<(projectId: string | undefined) => void>();
  private readonly accessSubscribers = new Set<() => void>();
  private readonly locks = new Set<HostLock>();

  /** Use `openStore`. */
  constructor(
    address: DatabaseAddress,
    keyring: Keyring,
    embedded: EmbeddedPostgres | undefined,
    options: StoreOptions,
  ) {
    this.address = address;
    this.keyring = keyring;
    this.embedded = embedded;
    this.options = options;
    this.listener = new NotificationListener(address, {
      changed: (what) => this.notify(what),
      connectionChanged: options.events.connectionChanged,
      silent: () => this.connections.cut(),
    });
    this.connections = new Connections(address, {
      outage: () => this.listener.outage,
      suspected: () => void this.listener.check(),
    });
    this.database = new Database(this.connections);
    this.tables = this.tablesOf(this.database);
    this.projects = this.tables.projects;
    this.servers = this.tables.servers;
    this.hosted = this.tables.hosted;
    this.products = this.tables.products;
    this.secrets = this.tables.secrets;
    this.access = this.tables.access;
    this.audit = this.tables.audit;
    this.calls = this.tables.calls;
    this.runs = this.tables.runs;
    this.offers = new OfferTable(this.database);
    this.sessions = new SessionTable(this.database);
    this.formerNames = new FormerNamesTable(this.database);
  }

  async start(): Promise<void> {
    await this.listener.start();
    try {
      const { warned } = this.options.events;
      await this.secrets.warnOfMissingKeys(warned);
      await this.tables.credentials.moveStored(this.database, warned);
    } catch (error) {
      await Promise.all([this.listener.close(), this.connections.close()]);
      throw error;
    }
  }

  /** A key for signatures, the same for all processes with the same secret key. */
  deriveKey(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.keyring.current().bytes, '', purpose, 32));
  }

  get isConnected(): boolean {
    return this.listener.outage === undefined;
  }

  /** The tables as somebody else than Switchboard itself uses them: the audit log names them. */
  by(actor: Actor): Tables {
    return this.tablesOf(this.database.by(actor));
  }

  /**
   * Notifies of committed changes of projects by any process. `undefined` means that notifications may have been missed, so
   * any project may have changed. Returns a function that unsubscribes.
   */
  subscribe(notify: (projectId: string | undefined) => void): () => void {
    this.subscribers.add(notify);
    return () => this.subscribers.delete(notify);
  }

  /** Notifies of committed changes of access by any process, and if some may have been missed. */
  subscribeAccess(notify: () => void): () => void {
    this.accessSubscribers.add(notify);
    return () => this.accessSubscribers.delete(notify);
  }

  /**
   * Competes for the role of the one process per database that hosts. Notifies when this process becomes the host, and when
   * it loses the role with its connection; it then tries again. Returns a function that gives up.
   */
  contendForHost(notify: (isHost: boolean) => void): () => void {
    const lock = new HostLock(this.address, notify);
    this.locks.add(lock);
    lock.start();
    return () => void lock.release().then(() => this.locks.delete(lock));
  }

  /** Deletes calls and runs past their project's retention, old audit entries and restart state. Returns the number of rows. */
  async deleteExpired(): Promise<number> {
    let deleted = 0;
    for (const table of [this.calls, this.runs, this.offers, this.sessions, this.formerNames]) {
      deleted += await table.deleteExpired();
    }
    return deleted + (await this.audit.deleteExpired(this.options.auditDays ?? AUDIT_DAYS));
  }

  async close(): Promise<void> {
    this.subscribers.clear();
    this.accessSubscribers.clear();
    const released = [...this.locks].map((lock) => lock.release());
    await Promise.all([...released, this.listener.close(), this.connections.close()]);
    await this.embedded?.stop();
  }

  private tablesOf(database: Database): Tables {
    return new Tables(database, this.keyring, this.options.moveCredentials);
  }

  private notify(what: string | undefined): void {
    if (what !== ACCESS) for (const notify of this.subscribers) notify(what);
    if (what === ACCESS || what === undefined) for (const notify of this.accessSubscribers) notify();
  }
}

/** Retries for a while, because the database server may be starting too. */
async function prepare(address: DatabaseAddress, { events, signal }: StoreOptions): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  for (let hasTold = false; ; hasTold = true) {
    const client = newClient(address);
    try {
      await client.connect();
      await migrate(client);
      return;
    } catch (error) {
      signal?.throwIfAborted();
      if (!isUnavailable(error)) throw refused(address, error);
      if (Date.now() > deadline) throw unreachable(address, error);
      if (!hasTold) events.progress(`waiting for the database at ${address.label}: ${reasonOf(error)}`);
      await delay(RETRY_MS, undefined, signal === undefined ? {} : { signal });
    } finally {
      await endClient(client);
    }
  }
}

function unreachable({ label }: DatabaseAddress, error: unknown): SwitchboardError {
  return new SwitchboardError(
    'database_unavailable',
    `The database at ${label} cannot be reached: ${reasonOf(error)}. Start it, or set DATABASE_URL to one that runs; without DATABASE_URL, Switchboard runs its own.`,
    { cause: error },
  );
}

function refused({ label }: DatabaseAddress, error: unknown): unknown {
  if (error instanceof SwitchboardError) return error;
  return new SwitchboardError(
    'invalid_config',
    `The database at ${label} cannot be used: ${reasonOf(error)}. See DATABASE_URL.`,
    { cause: error },
  );
}

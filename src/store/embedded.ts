import type { ChildProcess } from 'node:child_process';
import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { SwitchboardError } from '../errors.ts';
import { type DatabaseAddress, endClient, newClient } from './client.ts';
import { close, isOpen, passwordFor, ROLE, reopen } from './embedded/access.ts';
import { type Account, findAccount } from './embedded/account.ts';
import { type Binaries, findBinaries } from './embedded/binaries.ts';
import { prepareCluster, SUPERUSER } from './embedded/cluster.ts';
import { PostgresLog } from './embedded/log.ts';
import { findPostmaster, removeStalePidFiles, SOCKET } from './embedded/pid-file.ts';
import { hasExited, sendSignal, spawnPostmaster, stopPostmaster } from './embedded/postmaster.ts';
import { codeOf, reasonOf } from './failure.ts';

/** The longest socket path that all systems accept. */
const MAX_SOCKET_BYTES = 103;
/** Held by the Switchboard that owns the home folder, for as long as it runs. */
const OWNER_LOCK = 7_400_003;
const START_MS = 60_000;
const PAUSE_MS = 20;
/** By then PostgreSQL has noticed that the holder was killed. */
const RELEASE_MS = 2_000;
const LAST_RETRY_MS = 5_000;
/** Also the code for a role that does not exist. */
const WRONG_PASSWORD = '28P01';
/** Another process still uses the folder, and will release it. */
const passingTrouble = /lock file|shared memory block/;

export interface EmbeddedOptions {
  home: string;
  /** Cancels the start. */
  signal?: AbortSignal;
  /** Kills PostgreSQL immediately, if there is no time to stop it. */
  killSignal?: AbortSignal;
  events: {
    progress(message: string): void;
    warned(message: string): void;
  };
}

export async function startEmbedded(
  { home, events, signal, killSignal }: EmbeddedOptions,
  chooseAccount = findAccount,
): Promise<EmbeddedPostgres> {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  // Resolves links, so that a folder has only one path.
  const data = join(realpathSync(home), 'postgres');
  requireShortPath(data);
  const binaries = await findBinaries();
  const account = chooseAccount(realpathSync(home), data, binaries);
  await prepareCluster(data, binaries, account, events.progress, signal);
  const postgres = new EmbeddedPostgres(data, binaries, account, events.warned);
  const kill = () => postgres.kill();
  killSignal?.addEventListener('abort', kill);
  if (killSignal?.aborted) kill();
  try {
    await postgres.start(signal);
  } catch (error) {
    await postgres.abandon();
    throw error;
  }
  return postgres;
}

/**
 * The PostgreSQL that Switchboard runs. Its owner holds an advisory lock, which ends with the owner's connection: if a
 * Switchboard is killed, the next one takes over its running PostgreSQL.
 */
export class EmbeddedPostgres {
  readonly address: DatabaseAddress;
  private readonly data: string;
  private readonly binaries: Binaries;
  private readonly account: Account;
  private readonly warn: (message: string) => void;
  private readonly log: PostgresLog;
  private readonly password: string;
  /** The process that we started last. */
  private child: ChildProcess | undefined;
  private wasReady = false;
  private logSizeBefore = 0;
  private pid: number | undefined;
  private owning: pg.Client | undefined;
  private isStopping = false;
  private readonly stopped = new AbortController();

  constructor(data: string, binaries: Binaries, account: Account, warn: (message: string) => void) {
    this.data = data;
    this.binaries = binaries;
    this.account = account;
    this.warn = warn;
    this.log = new PostgresLog(join(data, '..', 'postgres.log'));
    this.password = passwordFor(data, warn);
    this.address = addressIn(data, { user: ROLE, password: this.password });
  }

  /** Resolves when we own it and it accepts connections. */
  async start(signal?: AbortSignal): Promise<void> {
    const deadline = Date.now() + START_MS;
    let heldSince: number | undefined;
    for (;;) {
      signal?.throwIfAborted();
      if (this.isStopping) throw stoppedError();
      const found = await this.takeLock();
      if (found === 'taken') return;
      if (found === 'closed') continue;
      if (found !== 'away') {
        heldSince ??= Date.now();
        if (Date.now() - heldSince > RELEASE_MS) throw inUse(this.data, found.holder);
      } else {
        heldSince = undefined;
        this.startUnlessRunning();
      }
      if (Date.now() > deadline) throw this.startFailure('it does not take connections');
      await delay(PAUSE_MS);
    }
  }

  async stop(): Promise<void> {
    if (this.isStopping) return;
    this.isStopping = true;
    this.stopped.abort();
    this.log.close();
    if (this.pid !== undefined) await stopPostmaster(this.pid, this.ownChild(), this.data);
    if (this.owning !== undefined) await endClient(this.owning);
  }

  /** Stops it without a checkpoint; committed data is not lost. */
  kill(): void {
    this.isStopping = true;
    this.stopped.abort();
    const pid = this.pid ?? this.child?.pid;
    if (pid !== undefined) sendSignal(pid, 'SIGQUIT');
  }

  /** Cancels a start, unless another Switchboard uses the PostgreSQL that we started. */
  async abandon(): Promise<void> {
    this.isStopping = true;
    this.log.close();
    const { child } = this;
    if (child?.pid === undefined || hasExited(child)) return;
    const holder = await this.takeLock();
    if (typeof holder === 'string') await stopPostmaster(child.pid, child, this.data);
    else child.unref();
    if (this.owning !== undefined) await endClient(this.owning);
  }

  private ownChild(): ChildProcess | undefined {
    return this.child?.pid === this.pid ? this.child : undefined;
  }

  /** Closes a cluster that accepts connections without a password; the caller then tries again. */
  private async takeLock(): Promise<'taken' | 'closed' | 'away' | { holder: string | undefined }> {
    const wasOpen = isOpen(this.data);
    const client = newClient(wasOpen ? addressIn(this.data, { user: SUPERUSER }) : this.address);
    try {
      await client.connect();
      const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [
        OWNER_LOCK,
      ]);
      if (!rows[0]!.taken) {
        const holder = await findHolder(client);
        await endClient(client);
        return { holder };
      }
      if (wasOpen) {
        await close(client, this.data, this.password).catch((error) =>
          Promise.reject(this.startFailure(reasonOf(error))),
        );
        await endClient(client);
        return 'closed';
      }
    } catch (error) {
      await endClient(client);
      if (error instanceof SwitchboardError) throw error;
      if (codeOf(error) === 'EACCES') throw this.startFailure(reasonOf(error));
      if (codeOf(error) === WRONG_PASSWORD) this.reopen();
      return 'away';
    }
    this.owning = client;
    this.wasReady = true;
    this.pid = findPostmaster(this.data);
    client.once('end', () => this.lost(client));
    return 'taken';
  }

  /** The password file was lost or replaced, so the password must be set again. */
  private reopen(): void {
    reopen(this.data);
    const pid = findPostmaster(this.data);
    if (pid !== undefined) sendSignal(pid, 'SIGHUP');
  }

  private startUnlessRunning(): void {
    const { child } = this;
    if (child !== undefined && !hasExited(child)) return;
    if (findPostmaster(this.data) !== undefined) return;
    if (child !== undefined && !this.wasReady) {
      this.child = undefined;
      const said = this.log.tail(this.logSizeBefore);
      if (!passingTrouble.test(said)) throw this.startFailure(said);
    }
    removeStalePidFiles(this.data);
    this.wasReady = false;
    this.logSizeBefore = this.log.size;
    this.child = this.log.use((file) =>
      spawnPostmaster(this.binaries.postgres, this.data, this.account, file),
    );
  }

  private startFailure(why: string): SwitchboardError {
    return new SwitchboardError(
      'database_unavailable',
      `PostgreSQL cannot be started in ${this.data}: ${why}\nIts log is ${this.log.path}.`,
    );
  }

  private lost(client: pg.Client): void {
    if (this.isStopping || this.owning !== client) return;
    this.owning = undefined;
    this.pid = undefined;
    this.warn(
      'The connection to PostgreSQL, which Switchboard runs, was lost. It is started again if it has ended.',
    );
    void this.recover();
  }

  private async recover(): Promise<void> {
    for (let pauseMs = 100; !this.isStopping; pauseMs = Math.min(pauseMs * 2, LAST_RETRY_MS)) {
      try {
        await this.start();
        return;
      } catch (error) {
        if (this.isStopping) return;
        this.warn((error as Error).message);
        await delay(pauseMs, undefined, { signal: this.stopped.signal }).catch(() => {});
      }
    }
  }
}

function addressIn(data: string, who: { user: string; password?: string }): DatabaseAddress {
  return { config: { host: data, port: 5432, ...who, database: 'postgres', ssl: false }, label: data };
}

async function findHolder(client: pg.Client): Promise<string | undefined> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT application_name AS name FROM pg_locks JOIN pg_stat_activity USING (pid)
     WHERE locktype = 'advisory' AND objid = $1 AND granted`,
    [OWNER_LOCK],
  );
  return rows[0] === undefined ? undefined : /\d+/.exec(rows[0].name)?.[0];
}

function inUse(data: string, holder: string | undefined): SwitchboardError {
  const who = holder === undefined ? 'Another Switchboard' : `Another Switchboard (process ${holder})`;
  return new SwitchboardError(
    'invalid_config',
    `${who} runs with the database in ${data}. Stop it, or give this one a SWITCHBOARD_HOME of its own; to share a database, set DATABASE_URL for both; to do without, run with --no-database.`,
  );
}

function stoppedError(): SwitchboardError {
  return new SwitchboardError('database_unavailable', 'Switchboard is being stopped.');
}

function requireShortPath(data: string): void {
  const path = join(data, SOCKET);
  if (Buffer.byteLength(path) <= MAX_SOCKET_BYTES) return;
  throw new SwitchboardError(
    'invalid_config',
    `The path of the database's socket is too long for the system: ${path} has more than ${MAX_SOCKET_BYTES} bytes. Set SWITCHBOARD_HOME to a shorter one, or set DATABASE_URL.`,
  );
}

import type pg from 'pg';
import { type Address, cutClient, endClient, newClient } from './client.ts';

/** The lock of a machine that vanished is free after so long, and not when TCP gives up, which may take hours. */
const keepAlives =
  'SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3';
/** Any number that no other program is likely to lock, and that none of our other locks has. */
const LOCK = 7_400_004;
const RETRY_MS = 1_000;
const HEARTBEAT_MS = 5_000;
/** A database that is silent for so long may have given the lock to another. */
const SILENCE_MS = 5_000;

/**
 * Of all processes on one database, one hosts: the one whose connection holds this lock. It ends with the connection, so
 * that nobody has to see to it that a process that died is followed by another.
 */
export class HostLock {
  private readonly address: Address;
  private readonly changed: (isHost: boolean) => void;
  private readonly heartbeatMs: number;
  private client: pg.Client | undefined;
  private timer: NodeJS.Timeout | undefined;
  /** Undefined before it is known. */
  private isHost: boolean | undefined;
  private releasing: Promise<void> | undefined;

  constructor(address: Address, changed: (isHost: boolean) => void, heartbeatMs = HEARTBEAT_MS) {
    this.address = address;
    this.changed = changed;
    this.heartbeatMs = heartbeatMs;
  }

  /** Tries until it is released. */
  start(): void {
    void this.attempt();
  }

  /** Settles when another may have it. Nothing is told any more. */
  release(): Promise<void> {
    this.releasing ??= this.end();
    return this.releasing;
  }

  private async end(): Promise<void> {
    clearTimeout(this.timer);
    const { client } = this;
    this.client = undefined;
    if (client !== undefined) await endClient(client);
  }

  private async attempt(): Promise<void> {
    try {
      const client = this.client ?? (await this.connect());
      if (client !== undefined) await this.ask(client);
    } catch {
      // That the database is away is told elsewhere.
      this.drop(this.client);
    }
    this.attemptAfter(this.isHost ? this.heartbeatMs : RETRY_MS);
  }

  private attemptAfter(pauseMs: number): void {
    clearTimeout(this.timer);
    if (this.releasing !== undefined) return;
    this.timer = setTimeout(() => void this.attempt(), pauseMs);
    this.timer.unref();
  }

  /** Undefined where nobody wants it any more. */
  private async connect(): Promise<pg.Client | undefined> {
    const client = newClient(this.address);
    try {
      await client.connect();
      await client.query(keepAlives);
    } catch (error) {
      void endClient(client);
      throw error;
    }
    if (this.releasing !== undefined) {
      await endClient(client);
      return undefined;
    }
    client.on('error', () => this.drop(client));
    client.on('end', () => this.drop(client));
    this.client = client;
    return client;
  }

  private async ask(client: pg.Client): Promise<void> {
    const patience = setTimeout(() => cutClient(client), SILENCE_MS);
    try {
      if (this.isHost) {
        await client.query('SELECT 1');
        return;
      }
      const { rows } = await client.query<{ held: boolean }>('SELECT pg_try_advisory_lock($1) AS held', [
        LOCK,
      ]);
      if (this.client === client) this.tell(rows[0]!.held);
    } finally {
      clearTimeout(patience);
    }
  }

  private drop(client: pg.Client | undefined): void {
    if (client === undefined || this.client !== client) return;
    this.client = undefined;
    void endClient(client);
    this.attemptAfter(RETRY_MS);
    this.tell(false);
  }

  private tell(isHost: boolean): void {
    if (this.releasing !== undefined || this.isHost === isHost) return;
    this.isHost = isHost;
    this.changed(isHost);
  }
}

import type pg from 'pg';
import { cutClient, type DatabaseAddress, endClient, newClient } from './client.ts';

/** Frees the lock of an unreachable machine after 30 s; TCP alone may take hours. */
const keepAlives =
  'SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3';
/** Unlikely to be used by other programs, and different from our other locks. */
const LOCK = 7_400_004;
const RETRY_MS = 1_000;
const HEARTBEAT_MS = 5_000;
/** After this long without a response, another process may have the lock. */
const SILENCE_MS = 5_000;

/**
 * Elects the one process per database that hosts servers: the one whose connection holds this lock. The lock ends with the
 * connection, so a crashed process needs no cleanup.
 */
export class HostLock {
  private readonly address: DatabaseAddress;
  private readonly changed: (isHost: boolean) => void;
  private readonly heartbeatMs: number;
  private client: pg.Client | undefined;
  private timer: NodeJS.Timeout | undefined;
  /** Undefined until the first attempt. */
  private isHost: boolean | undefined;
  private releasing: Promise<void> | undefined;

  constructor(address: DatabaseAddress, changed: (isHost: boolean) => void, heartbeatMs = HEARTBEAT_MS) {
    this.address = address;
    this.changed = changed;
    this.heartbeatMs = heartbeatMs;
  }

  /** Tries until it is released. */
  start(): void {
    void this.attempt();
  }

  /** Resolves when another process can take the lock. Sends no more notifications. */
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
      if (client !== undefined) await this.acquireOrCheck(client);
    } catch {
      // The listener reports an unavailable database.
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

  /** Undefined if it was released meanwhile. */
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

  private async acquireOrCheck(client: pg.Client): Promise<void> {
    const patience = setTimeout(() => cutClient(client), SILENCE_MS);
    try {
      if (this.isHost) {
        await client.query('SELECT 1');
        return;
      }
      const { rows } = await client.query<{ held: boolean }>('SELECT pg_try_advisory_lock($1) AS held', [
        LOCK,
      ]);
      if (this.client === client) this.notify(rows[0]!.held);
    } finally {
      clearTimeout(patience);
    }
  }

  private drop(client: pg.Client | undefined): void {
    if (client === undefined || this.client !== client) return;
    this.client = undefined;
    void endClient(client);
    this.attemptAfter(RETRY_MS);
    this.notify(false);
  }

  private notify(isHost: boolean): void {
    if (this.releasing !== undefined || this.isHost === isHost) return;
    this.isHost = isHost;
    this.changed(isHost);
  }
}

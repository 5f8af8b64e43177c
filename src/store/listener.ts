import type pg from 'pg';
import { type DatabaseAddress, endClient, newClient } from './client.ts';
import { reasonOf } from './failure.ts';

const CHANNEL = 'switchboard';
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;
const HEARTBEAT_MS = 15_000;
const HEARTBEAT_TIMEOUT_MS = 5_000;

interface ListenerEvents {
  /** The id of a project, or `access`; undefined if anything may have changed. */
  changed(what: string | undefined): void;
  connectionChanged(isConnected: boolean, reason: string | undefined): void;
  /** The connection timed out, so others to the same database may hang too. */
  silent(): void;
}

/** Receives notifications of changes, and detects whether the database is available. */
export class NotificationListener {
  private readonly address: DatabaseAddress;
  private readonly events: ListenerEvents;
  private readonly heartbeatMs: number;
  private client: pg.Client | undefined;
  private timer: NodeJS.Timeout | undefined;
  private failures = 0;
  private isClosed = false;
  private isChecking = false;
  /** Why the database is unavailable. */
  outage: string | undefined;

  constructor(address: DatabaseAddress, events: ListenerEvents, heartbeatMs = HEARTBEAT_MS) {
    this.address = address;
    this.events = events;
    this.heartbeatMs = heartbeatMs;
  }

  /** Resolves when notifications arrive. Rejects if the first connection fails; later ones are retried until closed. */
  async start(): Promise<void> {
    await this.connect();
  }

  /** Checks whether the database still responds. */
  async check(): Promise<void> {
    const { client } = this;
    if (client === undefined || this.isChecking) return;
    this.isChecking = true;
    const patience = setTimeout(() => {
      this.events.silent();
      this.lost(client, 'it does not answer');
    }, HEARTBEAT_TIMEOUT_MS);
    try {
      await client.query(`LISTEN ${CHANNEL}`);
    } catch (error) {
      this.lost(client, reasonOf(error));
    } finally {
      clearTimeout(patience);
      this.isChecking = false;
    }
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    const { client } = this;
    this.client = undefined;
    if (client !== undefined) await endClient(client);
  }

  private async connect(): Promise<void> {
    const client = newClient(this.address);
    client.on('error', (error) => this.lost(client, reasonOf(error)));
    client.on('end', () => this.lost(client, 'the connection was closed'));
    client.on('notification', ({ payload }) => this.events.changed(payload));
    try {
      await client.connect();
      await client.query(`LISTEN ${CHANNEL}`);
    } catch (error) {
      void endClient(client);
      throw error;
    }
    if (this.isClosed) {
      await endClient(client);
      return;
    }
    this.client = client;
    this.failures = 0;
    this.beat();
  }

  private beat(): void {
    this.timer = setTimeout(() => {
      void this.check().then(() => {
        if (this.client !== undefined && !this.isClosed) this.beat();
      });
    }, this.heartbeatMs);
    this.timer.unref();
  }

  private lost(client: pg.Client, reason: string): void {
    if (this.client !== client) return;
    this.client = undefined;
    this.outage = reason;
    clearTimeout(this.timer);
    void endClient(client);
    this.events.connectionChanged(false, reason);
    this.retryLater();
  }

  private retryLater(): void {
    if (this.isClosed) return;
    const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** Math.min(this.failures++, 20), LAST_RETRY_MS);
    this.timer = setTimeout(() => void this.retry(), pauseMs);
  }

  private async retry(): Promise<void> {
    try {
      await this.connect();
    } catch (error) {
      this.outage = reasonOf(error);
      this.retryLater();
      return;
    }
    if (this.isClosed) return;
    this.outage = undefined;
    this.events.connectionChanged(true, undefined);
    this.events.changed(undefined);
  }
}

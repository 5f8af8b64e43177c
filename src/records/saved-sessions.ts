import { createHash } from 'node:crypto';
import { allWithin } from '../gateway/discovery.ts';
import type { PersistedSession, SessionPersistence } from '../gateway/legacy/persistence.ts';
import type { SessionRow, SessionTable } from '../store/restart-state.ts';
import { BackgroundWriter } from './background-writer.ts';

interface SavedSessionsSettings {
  table: Pick<SessionTable, 'seenWithin' | 'save' | 'touch' | 'delete'>;
  maxSessions: number;
  sessionIdleMs: number;
}

/** Sessions that end sooner are never written. */
const WRITE_MS = 500;
const RETRY_MS = 5_000;
const FORGET_WAIT_MS = 2_000;
const BATCH = 500;

/** Saves sessions in the background, so that clients can resume them after a restart. */
export class SavedSessions implements SessionPersistence {
  private readonly settings: SavedSessionsSettings;
  /** Sessions of the last run, until their clients return or the sessions expire. */
  private dormant = new Map<string, SessionRow>();
  private readonly changed = new Map<string, () => PersistedSession>();
  private readonly ended = new Set<string>();
  private readonly written = new Set<string>();
  private readonly writer = new BackgroundWriter(() => this.write(), WRITE_MS, RETRY_MS);
  private forgetting: Promise<void> | undefined;
  private readonly touching: NodeJS.Timeout;
  private readonly expiry: NodeJS.Timeout;
  private isClosed = false;

  constructor(settings: SavedSessionsSettings) {
    this.settings = settings;
    const { sessionIdleMs } = settings;
    this.touching = setInterval(() => void this.touch(), Math.max(1_000, sessionIdleMs / 3)).unref();
    this.expiry = setTimeout(() => this.dormant.clear(), sessionIdleMs).unref();
  }

  async load(): Promise<void> {
    const { table, sessionIdleMs, maxSessions } = this.settings;
    const rows = await table.seenWithin(sessionIdleMs, maxSessions);
    this.dormant = new Map(rows.map((row) => [row.id_hash, row]));
  }

  /** Whether clients may return with sessions of the last run. */
  get areExpected(): boolean {
    return this.dormant.size > 0;
  }

  save(id: string, describe: () => PersistedSession): void {
    if (this.isClosed) return;
    const hash = hashOf(id);
    this.ended.delete(hash);
    this.changed.set(hash, describe);
    this.writer.schedule();
  }

  delete(id: string): void {
    if (this.isClosed) return;
    const hash = hashOf(id);
    this.changed.delete(hash);
    if (!this.written.delete(hash)) return;
    this.ended.add(hash);
    this.writer.schedule();
  }

  deleted(): Promise<void> | undefined {
    // A session that is being written may end meanwhile.
    if (this.isClosed || (this.ended.size === 0 && !this.writer.isWriting)) return undefined;
    this.forgetting ??= this.writer.run(() => {
      this.forgetting = undefined;
      return this.writeEnded();
    });
    return allWithin([this.forgetting], FORGET_WAIT_MS);
  }

  take(id: string, principal: string | undefined): PersistedSession | undefined {
    if (this.dormant.size === 0) return undefined;
    const hash = hashOf(id);
    const row = this.dormant.get(hash);
    if (row === undefined) return undefined;
    const state = JSON.parse(row.state) as Omit<PersistedSession, 'project'>;
    if (state.principal !== principal) return undefined;
    this.dormant.delete(hash);
    this.written.add(hash);
    return { project: row.project_id ?? undefined, ...state };
  }

  /** Writes the rest. The next start continues the sessions. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.touching);
    clearTimeout(this.expiry);
    await this.writer.close();
    await this.touch();
  }

  private async write(): Promise<void> {
    const { table } = this.settings;
    while (this.changed.size > 0) {
      const changed = [...this.changed].slice(0, BATCH);
      await table.save(changed.map(([hash, describe]) => rowOf(hash, describe())));
      for (const [hash, describe] of changed) {
        // It may have ended or changed meanwhile.
        if (this.changed.has(hash)) this.written.add(hash);
        else this.ended.add(hash);
        if (this.changed.get(hash) === describe) this.changed.delete(hash);
      }
    }
    await this.writeEnded();
  }

  private async writeEnded(): Promise<void> {
    const ended = [...this.ended];
    if (ended.length > 0) await this.settings.table.delete(ended);
    for (const hash of ended) this.ended.delete(hash);
  }

  private async touch(): Promise<void> {
    // Repeated soon anyway.
    await this.settings.table.touch([...this.written]).catch(() => {});
  }
}

function rowOf(id_hash: string, { project, ...state }: PersistedSession): SessionRow {
  return { id_hash, project_id: project ?? null, state: JSON.stringify(state) };
}

function hashOf(id: string): string {
  return createHash('sha256').update(id).digest('base64');
}

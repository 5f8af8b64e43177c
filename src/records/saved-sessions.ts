import { createHash } from 'node:crypto';
import { allWithin } from '../gateway/discovery.ts';
import type { KeptSession, SessionKeeper } from '../gateway/legacy/session-keeper.ts';
import type { SessionRow, SessionTable } from '../store/restart-state.ts';

interface KeptSessionsSettings {
  table: Pick<SessionTable, 'seenWithin' | 'save' | 'touch' | 'delete'>;
  maxSessions: number;
  sessionIdleMs: number;
}

/** Sessions that are opened and ended within that time are never written. */
const WRITE_MS = 500;
const RETRY_MS = 5_000;
/** So long a client waits for the end of its session to be written. */
const FORGET_WAIT_MS = 2_000;
/** So many are written in one statement. */
const BATCH = 500;

/** Writes sessions down, behind the back of their clients, so that these can go on with them after a restart. */
export class StoredSessions implements SessionKeeper {
  private readonly settings: KeptSessionsSettings;
  /** What was written down before this start, until its clients come or are not expected any more. */
  private dormant = new Map<string, SessionRow>();
  private readonly changed = new Map<string, () => KeptSession>();
  private readonly ended = new Set<string>();
  private readonly written = new Set<string>();
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();
  private isWriting = false;
  /** Ends of sessions that are written next, together. */
  private forgetting: Promise<void> | undefined;
  private readonly seeing: NodeJS.Timeout;
  private readonly expiry: NodeJS.Timeout;
  private isClosed = false;

  constructor(settings: KeptSessionsSettings) {
    this.settings = settings;
    const { sessionIdleMs } = settings;
    this.seeing = setInterval(() => void this.see(), Math.max(1_000, sessionIdleMs / 3)).unref();
    this.expiry = setTimeout(() => this.dormant.clear(), sessionIdleMs).unref();
  }

  async load(): Promise<void> {
    const { table, sessionIdleMs, maxSessions } = this.settings;
    const rows = await table.seenWithin(sessionIdleMs, maxSessions);
    this.dormant = new Map(rows.map((row) => [row.id_hash, row]));
  }

  /** Whether clients may come with sessions of the time before this start. */
  get areExpected(): boolean {
    return this.dormant.size > 0;
  }

  keep(id: string, describe: () => KeptSession): void {
    if (this.isClosed) return;
    const hash = hashOf(id);
    this.ended.delete(hash);
    this.changed.set(hash, describe);
    this.schedule(WRITE_MS);
  }

  forget(id: string): void {
    if (this.isClosed) return;
    const hash = hashOf(id);
    this.changed.delete(hash);
    if (!this.written.delete(hash)) return;
    this.ended.add(hash);
    this.schedule(WRITE_MS);
  }

  forgotten(): Promise<void> | undefined {
    // One that is being written may have ended meanwhile.
    if (this.isClosed || (this.ended.size === 0 && !this.isWriting)) return undefined;
    this.forgetting ??= this.next(() => {
      this.forgetting = undefined;
      return this.writeEnded();
    });
    return allWithin([this.forgetting], FORGET_WAIT_MS);
  }

  recall(id: string): KeptSession | undefined {
    if (this.dormant.size === 0) return undefined;
    const hash = hashOf(id);
    const row = this.dormant.get(hash);
    if (row === undefined) return undefined;
    this.dormant.delete(hash);
    this.written.add(hash);
    const state = JSON.parse(row.state) as Omit<KeptSession, 'project'>;
    return { project: row.project_id ?? undefined, ...state };
  }

  /** Sessions end with this process, and go on in the next. Writes what is left. */
  close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.seeing);
    clearTimeout(this.expiry);
    clearTimeout(this.timer);
    this.write();
    return this.writing.then(() => this.see());
  }

  private schedule(milliseconds: number): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.write();
    }, milliseconds).unref();
  }

  private write(): void {
    void this.next(() => this.writeAll());
  }

  /** One after the other. */
  private next(work: () => Promise<void>): Promise<void> {
    this.writing = this.writing
      .then(() => {
        this.isWriting = true;
        return work();
      })
      .catch(() => {
        // While the database is away, what is new waits.
        if (!this.isClosed) this.schedule(RETRY_MS);
      })
      .finally(() => {
        this.isWriting = false;
      });
    return this.writing;
  }

  private async writeAll(): Promise<void> {
    const { table } = this.settings;
    while (this.changed.size > 0) {
      const changed = [...this.changed].slice(0, BATCH);
      await table.save(changed.map(([hash, describe]) => rowOf(hash, describe())));
      for (const [hash, describe] of changed) {
        // It may have ended, or changed, meanwhile.
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

  private async see(): Promise<void> {
    // That they were seen is written again soon.
    await this.settings.table.touch([...this.written]).catch(() => {});
  }
}

function rowOf(id_hash: string, { project, ...state }: KeptSession): SessionRow {
  return { id_hash, project_id: project ?? null, state: JSON.stringify(state) };
}

function hashOf(id: string): string {
  return createHash('sha256').update(id).digest('base64');
}

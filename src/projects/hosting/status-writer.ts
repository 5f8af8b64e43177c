import type { Condition } from '../../hosting/supervisor.ts';
import type { WorkspaceStatus, WorkspaceTable } from '../../store/workspaces.ts';

const RETRY_MS = 1_000;

/** Writes down how hosted servers fare: of each the newest, as soon as the database takes it. */
export class StatusWriter {
  private readonly table: Pick<WorkspaceTable, 'setStatus'>;
  private readonly warned: (message: string) => void;
  private readonly waiting = new Map<string, Partial<WorkspaceStatus>>();
  private writing: Promise<void> | undefined;
  private retry: NodeJS.Timeout | undefined;
  private isFailing = false;
  private isHeld = false;

  constructor(table: Pick<WorkspaceTable, 'setStatus'>, warned: (message: string) => void) {
    this.table = table;
    this.warned = warned;
  }

  note(
    id: string,
    { status, provider, instanceId, reason, nextTry, startedAt, url, memory }: Condition,
  ): void {
    this.waiting.set(id, {
      ...this.waiting.get(id),
      status,
      // Before one is chosen it is not forgotten which one it was: that one has its volumes.
      ...(provider === undefined ? {} : { provider }),
      provider_workspace_id: instanceId ?? null,
      metadata: {
        memory: { ...memory },
        reason: reason ?? null,
        next_try: nextTry?.toISOString() ?? null,
        started_at: startedAt?.toISOString() ?? null,
        url: url ?? null,
      },
    });
    this.begin();
  }

  /** Keeps them to itself: another process may write its own. */
  hold(): void {
    this.isHeld = true;
  }

  /** Writes what was kept. */
  resume(): void {
    this.isHeld = false;
    if (this.waiting.size > 0) this.begin();
  }

  /** What was kept is for another process to say. */
  forget(): void {
    this.waiting.clear();
  }

  /** Writes what is left, once. */
  async close(): Promise<void> {
    clearTimeout(this.retry);
    await this.writing;
    await this.writeAll().catch(() => {});
  }

  private begin(): void {
    if (this.isHeld || this.writing !== undefined || this.retry !== undefined) return;
    this.writing = this.writeAll()
      .then(
        () => {
          this.isFailing = false;
        },
        (error: Error) => this.failed(error),
      )
      .finally(() => {
        this.writing = undefined;
        if (this.waiting.size > 0) this.begin();
      });
  }

  private async writeAll(): Promise<void> {
    for (const [id, note] of this.waiting) {
      if (this.isHeld) return;
      await this.table.setStatus(id, note);
      // Unless there is a newer one already.
      if (this.waiting.get(id) === note) this.waiting.delete(id);
    }
  }

  private failed(error: Error): void {
    if (!this.isFailing)
      this.warned(`How hosted servers fare cannot be written down just now: ${error.message}`);
    this.isFailing = true;
    this.retry = setTimeout(() => {
      this.retry = undefined;
      this.begin();
    }, RETRY_MS);
    this.retry.unref();
  }
}

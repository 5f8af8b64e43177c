import type { StatusReport } from '../../hosting/server-state.ts';
import type { WorkspaceStatus, WorkspaceTable } from '../../store/workspaces.ts';

const RETRY_MS = 1_000;

/** Persists the latest status of each hosted server as soon as the database accepts it. */
export class StatusWriter {
  private readonly table: Pick<WorkspaceTable, 'setStatus'>;
  private readonly warned: (message: string) => void;
  private readonly pending = new Map<string, Partial<WorkspaceStatus>>();
  private writing: Promise<void> | undefined;
  private retry: NodeJS.Timeout | undefined;
  private isFailing = false;
  private isPaused = false;

  constructor(table: Pick<WorkspaceTable, 'setStatus'>, warned: (message: string) => void) {
    this.table = table;
    this.warned = warned;
  }

  add(
    id: string,
    { status, provider, instanceId, reason, nextTry, startedAt, url, history }: StatusReport,
  ): void {
    this.pending.set(id, {
      ...this.pending.get(id),
      status,
      // Keeps the former provider until a new one is chosen, because it has the volumes.
      ...(provider === undefined ? {} : { provider }),
      provider_workspace_id: instanceId ?? null,
      metadata: {
        memory: { ...history },
        reason: reason ?? null,
        next_try: nextTry?.toISOString() ?? null,
        started_at: startedAt?.toISOString() ?? null,
        url: url ?? null,
      },
    });
    this.begin();
  }

  /** Another process may write its own status now. */
  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    if (this.pending.size > 0) this.begin();
  }

  discard(): void {
    this.pending.clear();
  }

  /** Writes pending statuses, without a retry. */
  async close(): Promise<void> {
    clearTimeout(this.retry);
    await this.writing;
    await this.writeAll().catch(() => {});
  }

  private begin(): void {
    if (this.isPaused || this.writing !== undefined || this.retry !== undefined) return;
    this.writing = this.writeAll()
      .then(
        () => {
          this.isFailing = false;
        },
        (error: Error) => this.failed(error),
      )
      .finally(() => {
        this.writing = undefined;
        if (this.pending.size > 0) this.begin();
      });
  }

  private async writeAll(): Promise<void> {
    for (const [id, status] of this.pending) {
      if (this.isPaused) return;
      await this.table.setStatus(id, status);
      // Unless a newer one was added.
      if (this.pending.get(id) === status) this.pending.delete(id);
    }
  }

  private failed(error: Error): void {
    if (!this.isFailing)
      this.warned(
        `The status of hosted servers cannot be saved: ${error.message}. It is retried every second.`,
      );
    this.isFailing = true;
    this.retry = setTimeout(() => {
      this.retry = undefined;
      this.begin();
    }, RETRY_MS);
    this.retry.unref();
  }
}

import type { ProjectState, ProjectTable } from '../store/projects.ts';

type Source = Pick<ProjectTable, 'all' | 'get'>;

interface Target {
  list(): { id: string }[];
  apply(state: ProjectState): unknown;
  remove(id: string): void;
}

const RETRY_MS = 1_000;

/**
 * Applies the stored state of projects. Reads run one at a time, so that an older state never replaces a newer one; requests
 * share a queued read.
 */
export class Refresher {
  private readonly source: Source;
  private readonly target: Target;
  private readonly queued = new Map<string | undefined, Promise<void>>();
  private last: Promise<void> = Promise.resolve();
  private readonly missed = new Set<string | undefined>();
  private retry: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(source: Source, target: Target) {
    this.source = source;
    this.target = target;
  }

  /** Without an id, any project may have changed. A failed read is retried. */
  follow(id: string | undefined): void {
    this.missed.add(id);
    this.refresh(id).then(
      () => this.missed.delete(id),
      () => this.schedule(),
    );
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.retry);
  }

  /** Resolves when everything that was committed before this call is applied. Without an id, reads all projects. */
  refresh(id?: string): Promise<void> {
    const shared = this.queued.get(id);
    if (shared !== undefined) return shared;
    const turn = this.last.then(() => {
      this.queued.delete(id);
      return id === undefined ? this.readAll() : this.read(id);
    });
    this.queued.set(id, turn);
    this.last = turn.catch(() => {});
    return turn;
  }

  private schedule(): void {
    if (this.isClosed || this.retry !== undefined) return;
    this.retry = setTimeout(() => {
      this.retry = undefined;
      for (const id of this.missed) this.follow(id);
    }, RETRY_MS);
    this.retry.unref();
  }

  private async read(id: string): Promise<void> {
    const state = await this.source.get(id);
    if (state === undefined) this.target.remove(id);
    else this.target.apply(state);
  }

  private async readAll(): Promise<void> {
    const states = await this.source.all();
    const ids = new Set(states.map(({ project }) => project.id));
    for (const { id } of this.target.list()) if (!ids.has(id)) this.target.remove(id);
    for (const state of states) this.target.apply(state);
  }
}

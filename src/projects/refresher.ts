import type { ProjectState, ProjectTable } from '../store/projects.ts';

type Source = Pick<ProjectTable, 'all' | 'get'>;

/** What is to be brought up to date. */
interface Target {
  list(): { id: string }[];
  apply(state: ProjectState): unknown;
  remove(id: string): void;
}

const RETRY_MS = 1_000;

/**
 * Brings projects up to what is written down. One read after the other, so that what was read earlier never takes the
 * place of what was read later; those who ask while one waits its turn share it.
 */
export class Refresher {
  private readonly source: Source;
  private readonly target: Target;
  private readonly waiting = new Map<string | undefined, Promise<void>>();
  private last: Promise<void> = Promise.resolve();
  /** What was not read although something has changed. */
  private readonly missed = new Set<string | undefined>();
  private retry: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(source: Source, target: Target) {
    this.source = source;
    this.target = target;
  }

  /** Something has changed. Where it cannot be read now, it is read later. */
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

  /** Settles when everything is seen that was written before this was asked for. Without an id it is about all projects. */
  refresh(id?: string): Promise<void> {
    const shared = this.waiting.get(id);
    if (shared !== undefined) return shared;
    const turn = this.last.then(() => {
      this.waiting.delete(id);
      return id === undefined ? this.readAll() : this.read(id);
    });
    this.waiting.set(id, turn);
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

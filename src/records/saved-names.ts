import type { FormerName } from '../gateway/former-names.ts';
import type { Scope } from '../gateway/scope.ts';
import type { FormerNamesTable } from '../store/restart-state.ts';
import { BackgroundWriter } from './background-writer.ts';

interface SavedNamesSettings {
  table: Pick<FormerNamesTable, 'all' | 'save'>;
  /** All projects together, and each of them by its id. */
  scopes: { readonly all: Scope; of(project: string): Scope | undefined };
  redact(scope: Scope, text: string): string;
  warned(message: string): void;
}

const RETRY_MS = 5_000;

/** Saves names that clients saw and that are no longer listed, for sessions that resume after a restart. */
export class SavedNames {
  private readonly settings: SavedNamesSettings;
  private readonly changed = new Set<Scope>();
  private readonly writer = new BackgroundWriter(() => this.write(), 0, RETRY_MS);

  constructor(settings: SavedNamesSettings) {
    this.settings = settings;
  }

  async restore(): Promise<void> {
    const { table, scopes, warned } = this.settings;
    for (const { project_id, names } of await table.all()) {
      const scope = project_id === null ? scopes.all : scopes.of(project_id);
      try {
        scope?.formerNames.restore(JSON.parse(names) as FormerName[]);
      } catch (error) {
        warned(`The former names of tools could not be restored: ${(error as Error).message}`);
      }
    }
  }

  update(scope: Scope): void {
    if (!scope.formerNames.isChanged) return;
    scope.formerNames.isChanged = false;
    this.changed.add(scope);
    this.writer.schedule();
  }

  private async write(): Promise<void> {
    for (const scope of this.changed) {
      this.changed.delete(scope);
      await this.save(scope).catch((error: unknown) => {
        this.changed.add(scope);
        throw error;
      });
    }
  }

  private async save(scope: Scope): Promise<void> {
    const { table, redact } = this.settings;
    // Secrets are never saved in plain text.
    const names = scope.formerNames.newest().filter((former) => {
      const text = JSON.stringify(former);
      return redact(scope, text) === text;
    });
    await table.save([{ project_id: scope.project?.id ?? null, names: JSON.stringify(names) }]);
  }
}

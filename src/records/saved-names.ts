import type { FormerName } from '../gateway/former-names.ts';
import type { Scope } from '../gateway/scope.ts';
import type { FormerNamesTable } from '../store/restart-state.ts';

interface KeptNamesSettings {
  table: Pick<FormerNamesTable, 'all' | 'save'>;
  /** All projects together, and each of them by its id. */
  scopes: { readonly all: Scope; of(project: string): Scope | undefined };
  /** The text without the secrets of the projects that a scope is of. */
  redact(scope: Scope, text: string): string;
  warned(message: string): void;
}

const RETRY_MS = 5_000;

/** Writes down which names clients were shown that are listed no longer, for the sessions that go on after a restart. */
export class StoredNames {
  private readonly settings: KeptNamesSettings;
  private readonly changed = new Set<Scope>();
  private timer: NodeJS.Timeout | undefined;
  private isWriting = false;

  constructor(settings: KeptNamesSettings) {
    this.settings = settings;
  }

  /** Gives the scopes back what was written down. That it cannot be read is no reason not to start. */
  async load(): Promise<void> {
    const { table, scopes, warned } = this.settings;
    for (const { project_id, names } of await table.all()) {
      const scope = project_id === null ? scopes.all : scopes.of(project_id);
      try {
        scope?.formerNames.restore(JSON.parse(names) as FormerName[]);
      } catch (error) {
        warned(`Names that clients were shown are not known any more: ${(error as Error).message}`);
      }
    }
  }

  /** What clients of this scope can list is another. */
  note(scope: Scope): void {
    if (!scope.formerNames.isChanged) return;
    scope.formerNames.isChanged = false;
    this.changed.add(scope);
    void this.write();
  }

  private async write(): Promise<void> {
    // What changes meanwhile is written after that.
    if (this.isWriting) return;
    this.isWriting = true;
    for (const scope of this.changed) {
      this.changed.delete(scope);
      await this.keep(scope).catch(() => {
        this.changed.add(scope);
        this.timer ??= setTimeout(() => {
          this.timer = undefined;
          void this.write();
        }, RETRY_MS).unref();
      });
      // While the database is away, it is not asked again and again.
      if (this.timer !== undefined) break;
    }
    this.isWriting = false;
  }

  private async keep(scope: Scope): Promise<void> {
    const { table, redact } = this.settings;
    // Nothing that is secret is written down as it is.
    const names = scope.formerNames.newest().filter((former) => {
      const text = JSON.stringify(former);
      return redact(scope, text) === text;
    });
    await table.save([{ project_id: scope.project?.id ?? null, names: JSON.stringify(names) }]);
  }
}

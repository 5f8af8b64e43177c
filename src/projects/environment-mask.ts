import type { WorkspaceRow } from '../store/workspaces.ts';
import { encodingsOf } from './encodings.ts';
import { Mask } from './mask.ts';

/** Shorter values occur in too many other texts. */
const SHORTEST = 8;
/** Beyond this, the oldest values are no longer masked. */
const MAX_VALUES = 1_000;

/** Masks the environment of a project's hosted servers, including former values: an old instance may still run with them. */
export class EnvironmentMask {
  private rows: readonly WorkspaceRow[] | undefined;
  /** Newest last. */
  private readonly values = new Set<string>();
  private mask = new Mask([]);

  apply(text: string, rows: readonly WorkspaceRow[]): string {
    if (rows !== this.rows) this.learn(rows);
    return this.mask.apply(text);
  }

  private learn(rows: readonly WorkspaceRow[]): void {
    this.rows = rows;
    const given = rows.flatMap(({ mcp_config }) => Object.values(mcp_config.environment));
    const current = new Set(given.filter((value) => value.length >= SHORTEST && !value.startsWith('${')));
    if (current.isSubsetOf(this.values)) return;
    for (const value of current) {
      this.values.delete(value);
      this.values.add(value);
    }
    for (const value of this.values) {
      if (this.values.size <= Math.max(MAX_VALUES, current.size)) break;
      this.values.delete(value);
    }
    this.mask = new Mask([...this.values].flatMap(encodingsOf));
  }
}

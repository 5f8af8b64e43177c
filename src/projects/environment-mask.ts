import type { WorkspaceRow } from '../store/workspaces.ts';
import { encodingsOf } from './encodings.ts';
import { Mask } from './mask.ts';

/** Shorter values stand in too many other texts. */
const SHORTEST = 8;
/** So many values are masked, those that were changed long ago not any more. */
const MAX_VALUES = 1_000;

/** Masks what the hosted servers of a project are started with, or were: an old instance may live on for a while. */
export class EnvironmentMask {
  private rows: readonly WorkspaceRow[] | undefined;
  /** The latest last. */
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

import { setImmediate as nextTurn } from 'node:timers/promises';

export interface ListedItem {
  group: string;
  /** The servers' own name or URI. */
  key: string;
  /** The serialized item. Read when a page is built. */
  readonly bytes: Buffer;
}

/** One list (tools, resources, …) of a catalog. Each page is serialized once. */
export class Listing {
  private readonly resultKey: string;
  private readonly items: readonly ListedItem[];
  private readonly pageSize: number;
  private readonly pages = new Map<number, Buffer>();
  private readonly inProgress = new Map<number, Promise<void>>();
  private positions: Map<string, number> | undefined;

  /** A `pageSize` of 0 means one page. */
  constructor(resultKey: string, items: readonly ListedItem[], pageSize: number) {
    this.resultKey = resultKey;
    this.items = items;
    this.pageSize = pageSize === 0 ? Number.POSITIVE_INFINITY : pageSize;
  }

  get length(): number {
    return this.items.length;
  }

  /** The result of a list request; undefined if the cursor is invalid. */
  page(cursor: string | undefined): Buffer | undefined {
    const start = cursor === undefined ? 0 : this.after(cursor);
    if (start === undefined) return undefined;
    let page = this.pages.get(start);
    if (page === undefined) {
      page = this.build(start);
      if (this.isKept(start)) this.pages.set(start, page);
    }
    return page;
  }

  /** Builds a long page in slices. Returns undefined if there is nothing to wait for. */
  prepare(cursor: string | undefined): Promise<void> | undefined {
    const start = cursor === undefined ? 0 : this.after(cursor);
    if (start === undefined || this.pages.has(start) || !this.isKept(start)) return undefined;
    if (Math.min(this.pageSize, this.items.length - start) <= SLICE) return undefined;
    let building = this.inProgress.get(start);
    if (building === undefined) {
      building = this.buildSlowly(start).finally(() => this.inProgress.delete(start));
      this.inProgress.set(start, building);
    }
    return building;
  }

  /** Caches only regular pages: cursors may start anywhere, and caching them all would take too much memory. */
  private isKept(start: number): boolean {
    return start === 0 || start % this.pageSize === 0;
  }

  private async buildSlowly(start: number): Promise<void> {
    const steps = this.steps(start);
    let step = steps.next();
    while (!step.done) {
      await nextTurn();
      step = steps.next();
    }
    this.pages.set(start, step.value);
  }

  private build(start: number): Buffer {
    const steps = this.steps(start);
    let step = steps.next();
    while (!step.done) step = steps.next();
    return step.value;
  }

  private after(cursor: string): number | undefined {
    const position = decodeCursor(cursor);
    if (position === undefined) return undefined;
    this.positions ??= new Map(
      this.items.map(({ group, key }, index) => [JSON.stringify([group, key]), index + 1]),
    );
    const next = this.positions.get(JSON.stringify([position.group, position.key]));
    if (next !== undefined) return next;
    // The item was removed: continue after the rest of its group, or end if the group is gone too.
    const last = this.items.findLastIndex(({ group }) => group === position.group);
    return last === -1 ? this.items.length : last + 1;
  }

  private *steps(start: number): Generator<undefined, Buffer> {
    const end = Math.min(start + this.pageSize, this.items.length);
    const parts: Buffer[] = [Buffer.from(`{${JSON.stringify(this.resultKey)}:[`)];
    for (let index = start; index < end; index++) {
      if (index > start) parts.push(COMMA);
      parts.push(this.items[index]!.bytes);
      if ((index - start) % SLICE === SLICE - 1) yield;
    }
    const last = this.items[end - 1];
    const next = end < this.items.length && last !== undefined ? `,"nextCursor":"${encodeCursor(last)}"` : '';
    parts.push(Buffer.from(`]${next}}`));
    return Buffer.concat(parts);
  }
}

const COMMA = Buffer.from(',');
/** This many items take a few milliseconds. */
const SLICE = 500;

/** The last item of a page. Stays valid if other groups change between two pages. */
interface Position {
  group: string;
  key: string;
}

/** Longer than the cursor of the longest URI with every character escaped. */
const MAX_CURSOR_LENGTH = 1024 * 1024;

export function encodeCursor({ group, key }: Position): string {
  return Buffer.from(JSON.stringify([group, key])).toString('base64url');
}

/** Returns undefined if the text is not one of our cursors. */
export function decodeCursor(cursor: string): Position | undefined {
  if (cursor.length > MAX_CURSOR_LENGTH) return undefined;
  try {
    const [group, key, ...rest] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (typeof group !== 'string' || typeof key !== 'string' || rest.length > 0) return undefined;
    // base64 and JSON can encode a value in several ways; only the canonical one is ours.
    return encodeCursor({ group, key }) === cursor ? { group, key } : undefined;
  } catch {
    return undefined;
  }
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import { SwitchboardError } from '../errors.ts';
import { CLOSE_LIST, CLOSE_OBJECT, COMMA, OPEN_LIST, OPEN_OBJECT, QUOTE, skipSpace } from './json-bytes.ts';
import { parseLossless } from './lossless.ts';
import { endOfString, keyAt } from './members.ts';

export interface ListLimits {
  items: number;
  bytes: number;
  /** For one item. */
  itemBytes: number;
  itemDepth: number;
}

export interface ListPage {
  /** The other members of the result, without large ones. */
  result: Record<string, unknown>;
  /** Members that are left out because of their size. */
  largeMembers: string[];
  error: unknown;
  items: unknown[];
  bytes: number;
  /** Items that exceed the limits of one item (`tooLarge`), and those after the limits of the list (`beyond`). */
  tooLarge: number;
  beyond: number;
}

/** No other member of a list is this large. */
export const LARGEST_MEMBER = 64 * 1024;
/** How much is scanned, and how long, before other work gets its turn. */
const SLICE_BYTES = 1024 * 1024;
const SLICE_MS = 10;

/** Reads a list response item by item, in slices. Builds no items over the limits. Rejects if the text is not JSON. */
export async function readList(bytes: Buffer, key: string, limits: ListLimits): Promise<ListPage> {
  const page: ListPage = {
    result: {},
    largeMembers: [],
    error: undefined,
    items: [],
    bytes: 0,
    tooLarge: 0,
    beyond: 0,
  };
  const pace = new Pace();
  const parse = (start: number, end: number) => parseLossless(bytes.toString('utf8', start, end));
  const readItems = async (start: number): Promise<number> => {
    // For a duplicate key, the last one counts.
    Object.assign(page, { items: [], bytes: 0, tooLarge: 0, beyond: 0 });
    let at = skipSpace(bytes, start + 1);
    while (at < bytes.length && bytes[at] !== CLOSE_LIST) {
      const end = await pace.pass(bytes, at);
      const size = end - at;
      if (size > limits.itemBytes || pace.deepest > limits.itemDepth) page.tooLarge++;
      else if (page.items.length >= limits.items || page.bytes + size > limits.bytes) page.beyond++;
      else if (isBuilt(() => page.items.push(parse(at, end)))) page.bytes += size;
      else page.tooLarge++;
      at = skipSpace(bytes, end);
      if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
      else if (bytes[at] !== CLOSE_LIST) throw new SyntaxError(`unexpected text at byte ${at}`);
    }
    return at + 1;
  };
  const readMembers = async (
    start: number,
    read: (name: string, at: number) => Promise<number>,
  ): Promise<number> => {
    let at = skipSpace(bytes, start + 1);
    while (bytes[at] === QUOTE) {
      const keyEnd = endOfString(bytes, at);
      const name = keyAt(bytes, at, keyEnd);
      at = skipSpace(bytes, await read(name, skipSpace(bytes, skipSpace(bytes, keyEnd) + 1)));
      if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
    }
    if (bytes[at] !== CLOSE_OBJECT) throw new SyntaxError(`unexpected text at byte ${at}`);
    return at + 1;
  };
  const readMember = async (name: string, at: number): Promise<number> => {
    if (name === key && bytes[at] === OPEN_LIST) return readItems(at);
    const end = await pace.pass(bytes, at);
    if (end - at <= LARGEST_MEMBER) page.result[name] = parse(at, end);
    else page.largeMembers.push(name);
    return end;
  };
  await readMembers(skipSpace(bytes, 0), async (name, at) => {
    if (name === 'result' && bytes[at] === OPEN_OBJECT) return readMembers(at, readMember);
    const end = await pace.pass(bytes, at);
    if (name === 'error') page.error = end - at <= LARGEST_MEMBER ? parse(at, end) : {};
    return end;
  });
  return page;
}

/** Returns false if the value has too many parts. */
function isBuilt(build: () => void): boolean {
  try {
    build();
    return true;
  } catch (error) {
    if (error instanceof SwitchboardError) return false;
    throw error;
  }
}

/** Skips values, and yields to other work after a while. */
class Pace {
  private since = performance.now();
  /** The nesting depth of the last value. */
  deepest = 0;

  /** Returns the position after the value at `start`, which is not fully validated. */
  async pass(bytes: Buffer, start: number): Promise<number> {
    await this.rest();
    this.deepest = 0;
    let depth = 0;
    let at = start;
    let sliceEnd = start + SLICE_BYTES;
    while (at < bytes.length) {
      const byte = bytes[at]!;
      if (byte === QUOTE) {
        at = endOfString(bytes, at);
        if (depth === 0) return at;
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
        if (depth === 0) return at;
        at++;
        if (--depth === 0) return at;
      } else {
        if (byte === OPEN_OBJECT || byte === OPEN_LIST) this.deepest = Math.max(this.deepest, ++depth);
        else if (depth === 0 && (byte === COMMA || byte <= 0x20)) return at;
        at++;
      }
      if (at < sliceEnd) continue;
      await this.rest();
      sliceEnd = at + SLICE_BYTES;
    }
    throw new SyntaxError('unexpected end');
  }

  private async rest(): Promise<void> {
    if (performance.now() - this.since < SLICE_MS) return;
    await nextTurn();
    this.since = performance.now();
  }
}

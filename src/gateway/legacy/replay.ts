import { byteLength } from '../../protocol/jsonrpc.ts';
import { type Dropped, type KeptEvent, ReplayBlock } from './replay-block.ts';

const MAX_EVENTS = 1_000;
const MAX_BYTES = 1024 * 1024;

/** The last events of one session, for clients that reconnect. The oldest are evicted first. */
export class Replay {
  private readonly budget: ReplayBudget;
  private blocks: ReplayBlock[] = [];
  private events = 0;
  private bytes = 0;
  /** Expiry times by stream, in order. */
  private finished: Map<number, number> | undefined;
  private isClosed = false;

  constructor(budget: ReplayBudget) {
    this.budget = budget;
  }

  add(event: KeptEvent): void {
    const size = byteLength(event.message);
    if (this.isClosed || size > this.budget.maxEventBytes) return;
    let block = this.blocks.at(-1);
    if (!block?.takes(size)) {
      block = new ReplayBlock(this);
      this.blocks.push(block);
    }
    block.append(event, size);
    this.events++;
    this.bytes += size;
    this.budget.written(block);
    while (this.events > MAX_EVENTS || (this.bytes > MAX_BYTES && this.events > 1)) {
      const oldest = this.blocks[0]!;
      this.count(oldest.dropOldest());
      if (oldest.events === 0) this.remove(oldest);
    }
  }

  /** The events of a stream after this one. */
  after(stream: number, sequence: number): KeptEvent[] {
    const found: KeptEvent[] = [];
    for (const block of this.blocks) block.collect(stream, sequence, found);
    return found;
  }

  /** Call when the end of the stream was sent: its events expire when the client can no longer return. */
  finish(stream: number): void {
    this.finished ??= new Map();
    this.finished.delete(stream);
    this.finished.set(stream, performance.now() + this.budget.finishedMs);
  }

  dropFinished(): void {
    if (this.finished === undefined) return;
    const now = performance.now();
    const over = new Set<number>();
    for (const [stream, due] of this.finished) {
      if (due > now) break;
      over.add(stream);
      this.finished.delete(stream);
    }
    if (this.finished.size === 0) this.finished = undefined;
    if (over.size > 0) this.drop((stream) => over.has(stream));
  }

  /** Call when the client must have received these events. */
  dropUpTo(stream: number, sequence: number): void {
    this.drop((own, place) => own === stream && place <= sequence);
  }

  get keptMs(): number {
    return this.budget.finishedMs;
  }

  /** Makes room for newer events of other sessions. */
  evict(block: ReplayBlock): void {
    this.count(block.dropAll());
    this.remove(block);
  }

  close(): void {
    this.isClosed = true;
    this.finished = undefined;
    for (const block of this.blocks) this.budget.release(block);
    this.blocks = [];
  }

  private drop(isOver: (stream: number, sequence: number) => boolean): void {
    for (const block of [...this.blocks]) {
      const dropped = block.drop(isOver);
      if (dropped.events === 0) continue;
      this.count(dropped);
      if (block.events === 0) this.remove(block);
      else this.budget.shrunk(block);
    }
  }

  private count({ events, bytes }: Dropped): void {
    this.events -= events;
    this.bytes -= bytes;
  }

  private remove(block: ReplayBlock): void {
    this.budget.release(block);
    const at = this.blocks.indexOf(block);
    if (at !== -1) this.blocks.splice(at, 1);
  }
}

/** A larger event would evict too much of other sessions. */
const LARGEST_SHARE = 1 / 4;
/** How much is freed at once when the budget is exceeded. */
const FREED_SHARE = 1 / 64;

/** How much all sessions together may keep for replay. The least recently written blocks are evicted first. */
export class ReplayBudget {
  readonly maxEventBytes: number;
  /** How long events are kept after they were sent; for a response, after its end. */
  readonly finishedMs: number;
  private readonly maxBytes: number;
  /** Sizes, in the order of the last write. */
  private readonly blocks = new Map<ReplayBlock, number>();
  private held = 0;

  constructor(maxBytes: number, finishedMs: number) {
    this.maxBytes = maxBytes;
    this.finishedMs = finishedMs;
    this.maxEventBytes = maxBytes * LARGEST_SHARE;
  }

  get heldBytes(): number {
    return this.held;
  }

  written(block: ReplayBlock): void {
    this.release(block);
    this.hold(block);
    if (this.held <= this.maxBytes) return;
    const enough = this.maxBytes * (1 - FREED_SHARE);
    for (const oldest of this.blocks.keys()) {
      if (this.held <= enough) return;
      oldest.owner.evict(oldest);
    }
  }

  /** The block keeps its position. */
  shrunk(block: ReplayBlock): void {
    const before = this.blocks.get(block);
    if (before === undefined) return;
    const now = block.heldBytes;
    this.held += now - before;
    this.blocks.set(block, now);
  }

  release(block: ReplayBlock): void {
    this.held -= this.blocks.get(block) ?? 0;
    this.blocks.delete(block);
  }

  private hold(block: ReplayBlock): void {
    const bytes = block.heldBytes;
    this.blocks.set(block, bytes);
    this.held += bytes;
  }
}

export function eventId(stream: number, sequence: number): string {
  return `${stream}_${sequence}`;
}

/** Undefined if the text is not an event id. */
export function parseEventId(text: string): { stream: number; sequence: number } | undefined {
  const match = /^(\d{1,15})_(\d{1,15})$/.exec(text);
  return match === null ? undefined : { stream: Number(match[1]), sequence: Number(match[2]) };
}

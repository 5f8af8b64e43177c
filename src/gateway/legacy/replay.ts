import { byteLength } from '../../protocol/jsonrpc.ts';
import { type Dropped, type KeptEvent, ReplayBlock } from './replay-block.ts';
import type { ReplayBudget } from './replay-budget.ts';

const MAX_EVENTS = 1_000;
const MAX_BYTES = 1024 * 1024;

/** The last events of one session, for a client that lost its connection. Bounded; the oldest go first. */
export class Replay {
  private readonly budget: ReplayBudget;
  private blocks: ReplayBlock[] = [];
  private events = 0;
  private bytes = 0;
  /** The streams whose end has gone out, and when their events are dropped; the first is due first. */
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

  /** What one stream has had after this place. */
  after(stream: number, sequence: number): KeptEvent[] {
    const found: KeptEvent[] = [];
    for (const block of this.blocks) block.collect(stream, sequence, found);
    return found;
  }

  /** The end of the stream has gone out: its events are dropped when the time for coming back is over. */
  finish(stream: number): void {
    this.finished ??= new Map();
    this.finished.delete(stream);
    this.finished.set(stream, performance.now() + this.budget.finishedMs);
  }

  /** To be called now and then. */
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

  /** The client has had this much of the stream, long ago. */
  dropUpTo(stream: number, sequence: number): void {
    this.drop((own, place) => own === stream && place <= sequence);
  }

  /** How long what has gone out is kept. */
  get keptMs(): number {
    return this.budget.finishedMs;
  }

  /** Room is needed for newer events of others. */
  evict(block: ReplayBlock): void {
    this.count(block.dropAll());
    this.remove(block);
  }

  /** Nothing is kept any more. */
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

export function eventId(stream: number, sequence: number): string {
  return `${stream}_${sequence}`;
}

/** Undefined where the text is no event id of ours. */
export function parseEventId(text: string): { stream: number; sequence: number } | undefined {
  const match = /^(\d{1,15})_(\d{1,15})$/.exec(text);
  return match === null ? undefined : { stream: Number(match[1]), sequence: Number(match[2]) };
}

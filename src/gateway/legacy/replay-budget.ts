import type { ReplayBlock } from './replay-block.ts';

/** One event over this share of the budget would push out too much of what others need. */
const LARGEST_SHARE = 1 / 4;
/** What is freed at once when the budget is spent. */
const FREED_SHARE = 1 / 64;

/** What all sessions together may keep for replay. The blocks that were written to least lately go first. */
export class ReplayBudget {
  readonly maxEventBytes: number;
  /** How long events are kept that have gone out: those of an answer after its end, those of a standing stream each. */
  readonly finishedMs: number;
  private readonly maxBytes: number;
  /** In the order in which they were last written to, with what each holds. */
  private readonly blocks = new Map<ReplayBlock, number>();
  private held = 0;

  constructor(maxBytes: number, finishedMs: number) {
    this.maxBytes = maxBytes;
    this.finishedMs = finishedMs;
    this.maxEventBytes = maxBytes * LARGEST_SHARE;
  }

  /** What is kept now. */
  get heldBytes(): number {
    return this.held;
  }

  /** An event was added to the block. */
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

  /** Events were dropped from the block, which keeps its place. */
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

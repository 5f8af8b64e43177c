import { join } from './jsonrpc.ts';

/** Smaller pieces are copied: the overhead would exceed their size, and each would keep its whole read buffer alive. */
const KEPT_BYTES = 4 * 1024;
const FIRST_BLOCK_BYTES = 1024;
/** Larger blocks are allocated outside Node's pool, and freed explicitly. */
const LARGE_BLOCK_BYTES = 128 * 1024;

/**
 * Collects bytes that arrive in pieces, in memory of at most a small multiple of their length: large pieces are kept,
 * small ones are copied together. A single piece is returned without a copy.
 */
export class Gathered {
  length = 0;
  private only: Buffer | undefined;
  private parts: Buffer[] = [];
  /** Follows `parts`; used up to `filled`. */
  private block: Buffer | undefined;
  private filled = 0;

  add(piece: Buffer): void {
    if (piece.length === 0) return;
    if (this.length === 0) {
      this.only = piece;
      this.length = piece.length;
      return;
    }
    if (this.only !== undefined) {
      const { only } = this;
      this.only = undefined;
      this.length = 0;
      this.append(only);
    }
    this.append(piece);
  }

  /** Returns all bytes so far and starts over. */
  take(): Buffer[] {
    const { only, parts } = this;
    if (only !== undefined) {
      this.only = undefined;
      this.length = 0;
      return [only];
    }
    this.seal();
    this.parts = [];
    this.length = 0;
    return parts;
  }

  /** The same as one buffer. */
  join(): Buffer {
    return join(this.take());
  }

  clear(): void {
    this.length = 0;
    this.only = undefined;
    this.parts = [];
    this.block = undefined;
    this.filled = 0;
  }

  private append(piece: Buffer): void {
    if (isWorthKeeping(piece)) {
      this.seal();
      this.parts.push(piece);
    } else {
      this.copy(piece);
    }
    this.length += piece.length;
  }

  private copy(piece: Buffer): void {
    if (this.block === undefined || piece.length > this.block.length - this.filled) this.grow(piece.length);
    this.filled += piece.copy(this.block!, this.filled);
  }

  /** Doubles the block, so that its bytes stay contiguous and need no join. */
  private grow(wanted: number): void {
    const { block: old, filled } = this;
    const size = Math.max(2 * (old?.length ?? 0), filled + wanted, FIRST_BLOCK_BYTES);
    this.block = size < LARGE_BLOCK_BYTES ? Buffer.allocUnsafe(size) : Buffer.allocUnsafeSlow(size);
    if (old === undefined) return;
    old.copy(this.block, 0, 0, filled);
    // Freed now, because the garbage collector underestimates its size.
    if (old.length >= LARGE_BLOCK_BYTES) (old.buffer as ArrayBuffer).transfer(0);
  }

  private seal(): void {
    if (this.block === undefined) return;
    const { block, filled } = this;
    this.block = undefined;
    this.filled = 0;
    this.parts.push(filled === block.length ? block : block.subarray(0, filled));
  }
}

function isWorthKeeping(piece: Buffer): boolean {
  return piece.length >= KEPT_BYTES && piece.buffer.byteLength <= 2 * piece.length;
}

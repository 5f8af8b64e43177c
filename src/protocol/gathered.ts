import { join } from './jsonrpc.ts';

/** A smaller piece is copied: by itself it would cost more than it holds, and keep all of the read that it is cut from. */
const KEPT_BYTES = 4 * 1024;
const FIRST_BLOCK_BYTES = 1024;
/** Blocks from here on have memory of their own, which is given back by hand. */
const LARGE_BLOCK_BYTES = 128 * 1024;

/**
 * Bytes that arrive piece by piece. However they are cut, they take up a small multiple of their length: large pieces are
 * kept as they are, small ones are copied together. What came in one piece is given out as it came.
 */
export class Gathered {
  length = 0;
  /** The only piece so far. */
  private only: Buffer | undefined;
  private parts: Buffer[] = [];
  /** Stands behind the parts, and is full up to `filled`. */
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

  /** Everything so far, in order; what comes next is gathered anew. */
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

  /** The same as one. */
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

  /** A block gives way to one of twice its size: what is in it stays in one piece, and need not be joined. */
  private grow(wanted: number): void {
    const { block: old, filled } = this;
    const size = Math.max(2 * (old?.length ?? 0), filled + wanted, FIRST_BLOCK_BYTES);
    this.block = size < LARGE_BLOCK_BYTES ? Buffer.allocUnsafe(size) : Buffer.allocUnsafeSlow(size);
    if (old === undefined) return;
    old.copy(this.block, 0, 0, filled);
    // Not left for the garbage collector, which is slow to see how much it is.
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

/** A smaller piece is copied: by itself it would cost more than it holds, and keep all of the read that it is cut from. */
const KEPT_BYTES = 16 * 1024;
const FIRST_BLOCK_BYTES = 1024;
const MAX_BLOCK_BYTES = 1024 * 1024;
/** Blocks from here on are worth giving back by hand. */
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
  /** The memory of large blocks, which nobody else has. */
  private large: Set<ArrayBufferLike> | undefined;

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
    this.large = undefined;
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

  /** The same as one. What it was gathered in is given back at once: the message does not lie there twice. */
  join(): Buffer {
    const { length, large } = this;
    const parts = this.take();
    if (parts.length === 1) return parts[0]!;
    const whole = Buffer.allocUnsafe(length);
    let at = 0;
    for (const part of parts) {
      at += part.copy(whole, at);
      if (large?.has(part.buffer)) (part.buffer as ArrayBuffer).transfer(0);
    }
    return whole;
  }

  clear(): void {
    this.large = undefined;
    this.length = 0;
    this.only = undefined;
    this.parts = [];
    this.block = undefined;
  }

  private append(piece: Buffer): void {
    const room = this.block === undefined ? 0 : this.block.length - this.filled;
    // What a block is left with is less than what is kept because of it.
    if (piece.length > room && isWorthKeeping(piece)) {
      this.seal();
      this.parts.push(piece);
    } else {
      this.copy(piece, room);
    }
    this.length += piece.length;
  }

  private copy(piece: Buffer, room: number): void {
    const fitting = Math.min(piece.length, room);
    if (fitting > 0) {
      piece.copy(this.block!, this.filled, 0, fitting);
      this.filled += fitting;
    }
    const rest = piece.length - fitting;
    if (rest === 0) return;
    this.seal();
    const grown = Math.min(Math.max(this.length, FIRST_BLOCK_BYTES), MAX_BLOCK_BYTES);
    const size = Math.max(grown, rest);
    if (size < LARGE_BLOCK_BYTES) {
      this.block = Buffer.allocUnsafe(size);
    } else {
      this.block = Buffer.allocUnsafeSlow(size);
      this.large ??= new Set();
      this.large.add(this.block.buffer);
    }
    this.filled = piece.copy(this.block, 0, fitting);
  }

  private seal(): void {
    if (this.block === undefined) return;
    const { block, filled } = this;
    this.block = undefined;
    this.parts.push(filled === block.length ? block : block.subarray(0, filled));
  }
}

function isWorthKeeping(piece: Buffer): boolean {
  return piece.length >= KEPT_BYTES && piece.buffer.byteLength <= 2 * piece.length;
}

import type { Chunks } from '../../protocol/jsonrpc.ts';

export interface KeptEvent {
  stream: number;
  sequence: number;
  message: Chunks;
}

/** Precedes each event: stream and sequence as doubles, then the length. */
const HEADER_BYTES = 20;
const SEQUENCE_AT = 8;
const LENGTH_AT = 16;
const DROPPED = -1;
const FIRST_BYTES = 512;
const FULL_BYTES = 8 * 1024;
/** Smaller events are copied; larger ones keep their chunks, unless those are tiny. */
const COPIED_BYTES = 64 * 1024;
const TINY_BYTES = 4 * 1024;
const BLOCK_COST = 256;

export interface Dropped {
  events: number;
  bytes: number;
}

/** A part of one session's log: events in a single buffer, or one large event. */
export class ReplayBlock {
  readonly owner: { evict(block: ReplayBlock): void };
  private log = Buffer.allocUnsafeSlow(0);
  private start = 0;
  private end = 0;
  private droppedBytes = 0;
  /** The message of the only event, if it is not in the buffer. */
  private large: Chunks | undefined;
  events = 0;

  constructor(owner: ReplayBlock['owner']) {
    this.owner = owner;
  }

  get heldBytes(): number {
    let bytes = BLOCK_COST + this.log.length;
    for (const chunk of this.large ?? []) bytes += chunk.buffer.byteLength;
    return bytes;
  }

  takes(size: number): boolean {
    return this.large === undefined && this.end + HEADER_BYTES + size <= FULL_BYTES;
  }

  append({ stream, sequence, message }: KeptEvent, size: number): void {
    const isLarge = size > COPIED_BYTES && size >= message.length * TINY_BYTES;
    if (isLarge) this.large = message.map(detached);
    this.reserve(isLarge ? HEADER_BYTES : HEADER_BYTES + size);
    this.log.writeDoubleLE(stream, this.end);
    this.log.writeDoubleLE(sequence, this.end + SEQUENCE_AT);
    this.log.writeUInt32LE(size, this.end + LENGTH_AT);
    this.end += HEADER_BYTES;
    this.events++;
    if (isLarge) return;
    for (const chunk of message) this.end += chunk.copy(this.log, this.end);
  }

  /** Adds the events of a stream after this one. */
  collect(stream: number, sequence: number, found: KeptEvent[]): void {
    for (let at = this.start; at < this.end; at = this.next(at)) {
      if (this.log.readDoubleLE(at) !== stream) continue;
      const own = this.log.readDoubleLE(at + SEQUENCE_AT);
      if (own <= sequence) continue;
      found.push({
        stream,
        sequence: own,
        message: this.large ?? [this.log.subarray(at + HEADER_BYTES, this.next(at))],
      });
    }
  }

  dropOldest(): Dropped {
    while (this.start < this.end) {
      const at = this.start;
      this.start = this.next(at);
      if (this.log.readDoubleLE(at) === DROPPED) {
        this.droppedBytes -= this.start - at;
        continue;
      }
      this.events--;
      return { events: 1, bytes: this.log.readUInt32LE(at + LENGTH_AT) };
    }
    return { events: 0, bytes: 0 };
  }

  drop(isOver: (stream: number, sequence: number) => boolean): Dropped {
    const dropped = { events: 0, bytes: 0 };
    for (let at = this.start; at < this.end; at = this.next(at)) {
      const stream = this.log.readDoubleLE(at);
      if (stream === DROPPED || !isOver(stream, this.log.readDoubleLE(at + SEQUENCE_AT))) continue;
      this.log.writeDoubleLE(DROPPED, at);
      this.droppedBytes += this.next(at) - at;
      dropped.events++;
      dropped.bytes += this.log.readUInt32LE(at + LENGTH_AT);
    }
    this.events -= dropped.events;
    if (this.events > 0 && this.droppedBytes > (this.end - this.start) / 2) this.compact();
    return dropped;
  }

  dropAll(): Dropped {
    const dropped = { events: 0, bytes: 0 };
    for (let one = this.dropOldest(); one.events > 0; one = this.dropOldest()) {
      dropped.events++;
      dropped.bytes += one.bytes;
    }
    return dropped;
  }

  private next(at: number): number {
    return at + HEADER_BYTES + (this.large === undefined ? this.log.readUInt32LE(at + LENGTH_AT) : 0);
  }

  /** A block doubles up to its full size; a larger event gets a block of exactly its size. */
  private reserve(bytes: number): void {
    const needed = this.end + bytes;
    if (needed <= this.log.length) return;
    const doubled = Math.max(FIRST_BYTES, Math.min(2 * this.log.length, FULL_BYTES));
    const grown = Buffer.allocUnsafeSlow(this.large === undefined ? Math.max(needed, doubled) : needed);
    this.log.copy(grown, 0, 0, this.end);
    this.log = grown;
  }

  private compact(): void {
    const kept = Buffer.allocUnsafeSlow(this.end - this.start - this.droppedBytes);
    let length = 0;
    for (let at = this.start; at < this.end; at = this.next(at)) {
      if (this.log.readDoubleLE(at) !== DROPPED) length += this.log.copy(kept, length, at, this.next(at));
    }
    this.log = kept;
    this.start = 0;
    this.end = length;
    this.droppedBytes = 0;
  }
}

/** A few bytes of a large read would keep all of it in memory. */
function detached(chunk: Buffer): Buffer {
  if (chunk.buffer.byteLength <= 2 * chunk.length) return chunk;
  const copy = Buffer.allocUnsafeSlow(chunk.length);
  chunk.copy(copy);
  return copy;
}

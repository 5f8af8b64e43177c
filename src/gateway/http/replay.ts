import { byteLength, type Chunks } from '../../protocol/jsonrpc.ts';

/** One event that was sent, or should have been. */
export interface KeptEvent {
  stream: number;
  sequence: number;
  message: Chunks;
}

const MAX_EVENTS = 1_000;
const MAX_BYTES = 1024 * 1024;

/** The last events of one session, for a client that lost its connection. Bounded; the oldest go first. */
export class Replay {
  private kept: KeptEvent[] | undefined;
  private bytes = 0;

  add({ stream, sequence, message }: KeptEvent): void {
    const event = { stream, sequence, message: message.map(byItself) };
    this.kept ??= [];
    this.kept.push(event);
    this.bytes += byteLength(event.message);
    while (this.kept.length > MAX_EVENTS || (this.bytes > MAX_BYTES && this.kept.length > 1)) {
      this.bytes -= byteLength(this.kept.shift()!.message);
    }
  }

  /** What one stream has had after this place. */
  after(stream: number, sequence: number): KeptEvent[] {
    return this.kept?.filter((event) => event.stream === stream && event.sequence > sequence) ?? [];
  }
}

/** A few bytes of a large read would keep all of it in memory for as long as they are kept. */
function byItself(chunk: Buffer): Buffer {
  if (chunk.buffer.byteLength <= 2 * chunk.length) return chunk;
  const copy = Buffer.allocUnsafeSlow(chunk.length);
  chunk.copy(copy);
  return copy;
}

export function eventId(stream: number, sequence: number): string {
  return `${stream}_${sequence}`;
}

/** Undefined where the text is no event id of ours. */
export function parseEventId(text: string): { stream: number; sequence: number } | undefined {
  const match = /^(\d{1,15})_(\d{1,15})$/.exec(text);
  return match === null ? undefined : { stream: Number(match[1]), sequence: Number(match[2]) };
}

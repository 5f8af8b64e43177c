import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Message } from '../protocol/message.ts';
import { readMessage, splitBatch } from '../protocol/message-reader.ts';

/** Past this nobody else gets a turn before what waits is dealt with: a server must not fill our memory meanwhile. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** So many that have waited are dealt with before others get their turn. */
const SLICE_MESSAGES = 100;

/** Deals with something that came; a promise where that takes several turns. */
type Action = () => Promise<void> | void;

/** What comes from a server, in its order: while a large message is read in slices, nothing overtakes it. */
export class InboundQueue {
  /** What came after one that is being dealt with. */
  private waiting: { bytes: number; action: Action }[] | undefined;
  private bytes = 0;
  private readonly threw: (error: unknown) => void;

  /** `threw` is told of an action that failed after others had their turn; those behind it are dealt with all the same. */
  constructor(threw: (error: unknown) => void) {
    this.threw = threw;
  }

  get isBusy(): boolean {
    return this.waiting !== undefined;
  }

  handle(bytes: number, action: Action): void {
    if (this.waiting !== undefined) {
      this.waiting.push({ bytes, action });
      this.bytes += bytes;
      return;
    }
    const working = action();
    if (working === undefined) return;
    this.waiting = [];
    void this.goOn(working);
  }

  /** Lets others have their turn. */
  readonly rest = (): Promise<void> | undefined => (this.bytes > MAX_WAITING_BYTES ? undefined : nextTurn());

  private async goOn(working: Promise<void>): Promise<void> {
    await working.catch(this.threw);
    let done = 0;
    while (this.waiting !== undefined && this.waiting.length > 0) {
      const next = this.waiting.reverse();
      this.waiting = [];
      for (let one = next.pop(); one !== undefined; one = next.pop()) {
        this.bytes -= one.bytes;
        try {
          await one.action();
        } catch (error) {
          this.threw(error);
        }
        if (++done % SLICE_MESSAGES === 0) await this.rest();
      }
    }
    this.waiting = undefined;
  }
}

/** The messages of a batch, or the one that is none. */
export function partsOf(bytes: Buffer): readonly Buffer[] {
  return quickly(() => splitBatch(bytes)) ?? [bytes];
}

export function readPart(part: Buffer): Message {
  return quickly(() => readMessage(part));
}

/** What a server says may be wrong a great many times, and nobody looks at where we found that: that would take the longest. */
function quickly<Result>(read: () => Result): Result {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return read();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

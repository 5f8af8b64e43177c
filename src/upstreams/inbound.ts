import { setImmediate as nextTurn } from 'node:timers/promises';
import { byteLength, type Chunks, join } from '../protocol/jsonrpc.ts';
import { LARGE_BYTES } from '../protocol/large-walk.ts';
import type { Message } from '../protocol/message.ts';
import { readLargeMessage, readMessage, splitBatch } from '../protocol/message-reader.ts';

/** With more queued than this, the queue is emptied without yielding, so that a server cannot fill our memory. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;
/** How many queued messages are processed per turn of the event loop. */
const MESSAGES_PER_TURN = 100;

/** Processes something from a server; returns a promise if that takes several turns. */
type Action = () => Promise<void> | void;

/** Keeps messages from a server in order: while a large one is read in slices, nothing overtakes it. */
export class InboundQueue {
  private queue: { bytes: number; action: Action }[] = [];
  private bytes = 0;
  private readonly onError: (error: unknown) => void;
  isBusy = false;

  /** `onError` gets the error of an asynchronous or queued action; the actions behind it still run. */
  constructor(onError: (error: unknown) => void) {
    this.onError = onError;
  }

  handle(bytes: number, action: Action): void {
    if (this.isBusy) {
      this.queue.push({ bytes, action });
      this.bytes += bytes;
      return;
    }
    const working = action();
    if (working === undefined) return;
    this.isBusy = true;
    void this.drain(working);
  }

  /** Lets other work have its turn. */
  readonly rest = (): Promise<void> | undefined => (this.bytes > MAX_QUEUED_BYTES ? undefined : nextTurn());

  private async drain(working: Promise<void>): Promise<void> {
    await working.catch(this.onError);
    let done = 0;
    while (this.queue.length > 0) {
      const next = this.queue.reverse();
      this.queue = [];
      for (let one = next.pop(); one !== undefined; one = next.pop()) {
        this.bytes -= one.bytes;
        try {
          await one.action();
        } catch (error) {
          this.onError(error);
        }
        if (++done % MESSAGES_PER_TURN === 0) await this.rest();
      }
    }
    this.isBusy = false;
  }
}

/** Parses a message or a batch. Returns a promise for a large message, which is parsed in slices. */
export function parseMessages(
  chunks: Chunks,
  rest: InboundQueue['rest'],
  receive: (message: Message) => void,
): Promise<void> | void {
  const bytes = join(chunks);
  if (byteLength(chunks) > LARGE_BYTES) return readLargeMessage(bytes, rest).then(receive);
  for (const part of withoutStackTraces(() => splitBatch(bytes)) ?? [bytes])
    receive(withoutStackTraces(() => readMessage(part)));
}

/** A server may send very many invalid messages, and stack traces would be the most expensive part of them. */
function withoutStackTraces<Result>(parse: () => Result): Result {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return parse();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

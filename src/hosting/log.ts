import { MAX_LOG_LINE } from '../channels/line-pipe.ts';
import { join } from '../protocol/jsonrpc.ts';
import { LineSplitter } from '../protocol/lines.ts';

export interface LogLine {
  at: Date;
  line: string;
}

const MAX_LINES = 1_000;
/** Longer lines are cut, after redaction. */
const SHOWN_CHARACTERS = 2_000;

/** The last lines that a hosted server wrote, and its events. Survives restarts of the server. */
export class HostedLog {
  private readonly redact: (text: string) => string;
  /** A ring buffer: once it is full, the next line replaces the oldest. */
  private readonly ring: LogLine[] = [];
  private oldest = 0;
  private readonly listeners = new Set<(line: LogLine) => void>();

  constructor(redact: (text: string) => string) {
    this.redact = redact;
  }

  /** Returns the redacted line. */
  add(text: string): string {
    const clean = this.redact(text);
    const line = clean.length > SHOWN_CHARACTERS ? `${clean.slice(0, SHOWN_CHARACTERS)} …` : clean;
    const entry = { at: new Date(), line };
    this.ring[this.oldest] = entry;
    this.oldest = (this.oldest + 1) % MAX_LINES;
    for (const listener of this.listeners) listener(entry);
    return line;
  }

  get lines(): readonly LogLine[] {
    if (this.ring.length < MAX_LINES) return [...this.ring];
    return [...this.ring.slice(this.oldest), ...this.ring.slice(0, this.oldest)];
  }

  /** Returns the function that ends the subscription. */
  subscribe(listener: (line: LogLine) => void): () => void {
    // A new function, so that the same listener can subscribe twice.
    const own = (line: LogLine) => listener(line);
    this.listeners.add(own);
    return () => {
      this.listeners.delete(own);
    };
  }
}

export interface LogSubscriber {
  line(line: LogLine): void;
  removed(): void;
}

interface Subscription {
  id: string;
  subscriber: LogSubscriber;
  /** Undefined while another process runs the server. */
  log: HostedLog | undefined;
  unsubscribe(): void;
}

/** Subscriptions to the logs of servers. They continue with the new log if a server moves to this process. */
export class LogSubscriptions {
  private readonly subscriptions = new Set<Subscription>();
  private readonly logOf: (id: string) => HostedLog | undefined;

  constructor(logOf: (id: string) => HostedLog | undefined) {
    this.logOf = logOf;
  }

  /** Returns the lines so far; the subscriber receives the following ones. */
  add(id: string, subscriber: LogSubscriber): { lines: readonly LogLine[]; stop(): void } {
    const subscription: Subscription = { id, subscriber, log: undefined, unsubscribe() {} };
    this.attach(subscription, false);
    this.subscriptions.add(subscription);
    return {
      lines: subscription.log?.lines ?? [],
      stop: () => {
        subscription.unsubscribe();
        this.subscriptions.delete(subscription);
      },
    };
  }

  retain(ids: ReadonlySet<string>): void {
    for (const subscription of this.subscriptions) {
      if (ids.has(subscription.id)) continue;
      this.subscriptions.delete(subscription);
      subscription.subscriber.removed();
    }
  }

  /** Switches subscriptions to new logs. */
  refresh(): void {
    for (const subscription of this.subscriptions) this.attach(subscription, true);
  }

  private attach(subscription: Subscription, sendsOldLines: boolean): void {
    const { subscriber } = subscription;
    const log = this.logOf(subscription.id);
    if (log === undefined || log === subscription.log) return;
    subscription.unsubscribe();
    subscription.log = log;
    if (sendsOldLines) for (const line of log.lines) subscriber.line(line);
    subscription.unsubscribe = log.subscribe((line) => subscriber.line(line));
  }
}

export function logLines(log: (line: string) => void): LineSplitter {
  return new LineSplitter(MAX_LOG_LINE, {
    line: (chunks) => log(join(chunks).toString()),
    tooLong: () => log(`skipped a line longer than ${MAX_LOG_LINE} bytes`),
  });
}

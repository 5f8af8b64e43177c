import type { ServerResponse } from 'node:http';
import { openEventStream, writeEvent } from '../../http/event-stream.ts';

export const KEEP_ALIVE_MS = 15_000;

/** Somebody who reads Server-Sent Events, or will in a moment: what happens until then is kept. */
export class EventReader {
  /** A reader that leaves this much unread is cut off: it can come back, and begins with the state of then. */
  private readonly maxUnreadBytes: number;
  private response: ServerResponse | undefined;
  private held: Buffer[] = [];
  private hasEnded = false;

  constructor(maxUnreadBytes: number) {
    this.maxUnreadBytes = maxUnreadBytes;
  }

  begin(response: ServerResponse, first: Buffer): void {
    this.response = response;
    openEventStream(response);
    response.write(first);
    for (const bytes of this.held) response.write(bytes);
    this.held = [];
    if (this.hasEnded) response.end();
  }

  /** False for one that does not read, and has been cut off. */
  tell(bytes: Buffer): boolean {
    if (this.response === undefined) {
      this.held.push(bytes);
      return true;
    }
    // Checked before writing: the first event alone may be larger than the limit, and be read in time.
    return writeEvent(this.response, [bytes], this.maxUnreadBytes);
  }

  end(): void {
    this.hasEnded = true;
    this.response?.end();
  }
}

export function eventBytes(type: string, data: object): Buffer {
  return Buffer.from(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
}

import type { ServerResponse } from 'node:http';

export const KEEP_ALIVE_MS = 15_000;
export const keepAlive = Buffer.from(': keep-alive\n\n');

const headers = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

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
    response.writeHead(200, headers).write(first);
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
    // Looked at before and not after: how things stand may be more than that by itself, and be read in time.
    if (this.response.writableLength <= this.maxUnreadBytes) {
      this.response.write(bytes);
      return true;
    }
    this.response.destroy();
    return false;
  }

  end(): void {
    this.hasEnded = true;
    this.response?.end();
  }
}

export function eventBytes(type: string, data: object): Buffer {
  return Buffer.from(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
}

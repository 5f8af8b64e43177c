import type { ServerResponse } from 'node:http';
import type { ServerDirectory } from './servers.ts';

const KEEP_ALIVE_MS = 15_000;
/** A reader that leaves this much unread is cut off: it can come back, and begins with the state of then. */
const MAX_UNREAD_BYTES = 1024 * 1024;

const keepAlive = Buffer.from(': keep-alive\n\n');
const headers = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

/** The transitions of all servers, as Server-Sent Events for everybody who wants to see them. */
export class EventFeed {
  private readonly directory: ServerDirectory;
  private readonly readers = new Set<ServerResponse>();
  private leave: (() => void) | undefined;
  private isClosed = false;

  constructor(directory: ServerDirectory) {
    this.directory = directory;
  }

  /** Tells how things stand, and from then on what changes, until the reader goes. */
  open(response: ServerResponse): void {
    const now = eventBytes('servers', { servers: this.directory.servers() });
    response.writeHead(200, headers).write(now);
    if (this.isClosed) {
      response.end();
      return;
    }
    this.leave ??= this.join();
    this.readers.add(response);
    response.on('close', () => this.remove(response));
  }

  /** Ends the streams of all readers. */
  close(): void {
    this.isClosed = true;
    for (const response of this.readers) {
      this.remove(response);
      response.end();
    }
  }

  /** One subscription, one timer and one text for all readers, and none of these where there is no reader. */
  private join(): () => void {
    const unsubscribe = this.directory.subscribe((event) => this.tell(eventBytes('server', event)));
    const timer = setInterval(() => this.tell(keepAlive), KEEP_ALIVE_MS);
    timer.unref();
    return () => {
      unsubscribe();
      clearInterval(timer);
    };
  }

  private tell(bytes: Buffer): void {
    for (const response of this.readers) {
      // Looked at before and not after: how things stand may be more than that by itself, and be read in time.
      if (response.writableLength <= MAX_UNREAD_BYTES) {
        response.write(bytes);
      } else {
        this.remove(response);
        response.destroy();
      }
    }
  }

  private remove(response: ServerResponse): void {
    this.readers.delete(response);
    if (this.readers.size > 0) return;
    this.leave?.();
    this.leave = undefined;
  }
}

function eventBytes(type: string, data: object): Buffer {
  return Buffer.from(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
}

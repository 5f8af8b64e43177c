import type { ServerResponse } from 'node:http';
import type { Backend } from './backend.ts';

const KEEP_ALIVE_MS = 15_000;
/** A reader that leaves this much unread is cut off: it can come back, and begins with the state of then. */
const MAX_UNREAD_BYTES = 1024 * 1024;

const keepAlive = Buffer.from(': keep-alive\n\n');
const headers = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

/** The transitions of servers, project by project, as Server-Sent Events for everybody who wants to see them. */
export class EventFeed {
  private readonly backend: Backend;
  /** By the project's id; only those that somebody reads. */
  private readonly projects = new Map<string, ProjectFeed>();
  private isClosed = false;

  constructor(backend: Backend) {
    this.backend = backend;
  }

  /** Gives what tells a reader how things stand, and from then on what changes, until the reader goes. */
  async enter(project: string): Promise<(response: ServerResponse) => void> {
    const { id } = await this.backend.projects.get(project);
    const reader = new Reader();
    const feed = this.feedOf(id);
    feed.add(reader);
    try {
      const servers = await this.backend.servers.list(id);
      if (this.isClosed) feed.end(reader);
      return (response) => {
        if (response.destroyed) {
          feed.remove(reader);
          return;
        }
        response.on('close', () => feed.remove(reader));
        reader.begin(response, eventBytes('servers', { servers }));
        if (response.req.method === 'HEAD') feed.end(reader);
      };
    } catch (error) {
      feed.remove(reader);
      throw error;
    }
  }

  /** Ends the streams of all readers. */
  close(): void {
    this.isClosed = true;
    for (const feed of this.projects.values()) feed.endAll();
  }

  private feedOf(id: string): ProjectFeed {
    const open = this.projects.get(id);
    if (open !== undefined) return open;
    const feed = new ProjectFeed(this.backend, id, () => this.projects.delete(id));
    this.projects.set(id, feed);
    return feed;
  }
}

/** One subscription, one timer and one text for all readers of a project, and none of these where there is no reader. */
class ProjectFeed {
  private readonly readers = new Set<Reader>();
  private readonly unsubscribe: () => void;
  private readonly timer: NodeJS.Timeout;
  private readonly onEmpty: () => void;

  constructor(backend: Backend, id: string, onEmpty: () => void) {
    this.onEmpty = onEmpty;
    this.unsubscribe = backend.subscribe(id, {
      serverChanged: (event) => this.tell(eventBytes('server', event)),
      projectRemoved: () => this.endAll(),
    });
    this.timer = setInterval(() => this.tell(keepAlive), KEEP_ALIVE_MS);
    this.timer.unref();
  }

  add(reader: Reader): void {
    this.readers.add(reader);
  }

  remove(reader: Reader): void {
    if (!this.readers.delete(reader) || this.readers.size > 0) return;
    clearInterval(this.timer);
    this.unsubscribe();
    this.onEmpty();
  }

  end(reader: Reader): void {
    this.remove(reader);
    reader.end();
  }

  endAll(): void {
    for (const reader of this.readers) this.end(reader);
  }

  private tell(bytes: Buffer): void {
    for (const reader of this.readers) {
      if (!reader.tell(bytes)) this.remove(reader);
    }
  }
}

/** Somebody who reads, or will in a moment: what happens until then is kept. */
class Reader {
  private response: ServerResponse | undefined;
  private held: Buffer[] = [];
  private hasEnded = false;

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
    if (this.response.writableLength <= MAX_UNREAD_BYTES) {
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

function eventBytes(type: string, data: object): Buffer {
  return Buffer.from(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
}

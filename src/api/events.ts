import type { ServerResponse } from 'node:http';
import { sseKeepAlive } from '../protocol/sse.ts';
import type { Backend } from './backend.ts';
import { EventReader, eventBytes, KEEP_ALIVE_MS } from './http/event-reader.ts';

/** A reader that leaves this much unread is cut off: it can come back, and begins with the state of then. */
const MAX_UNREAD_BYTES = 1024 * 1024;

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
    const reader = new EventReader(MAX_UNREAD_BYTES);
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
  private readonly readers = new Set<EventReader>();
  private readonly unsubscribe: () => void;
  private readonly timer: NodeJS.Timeout;
  private readonly onEmpty: () => void;

  constructor(backend: Backend, id: string, onEmpty: () => void) {
    this.onEmpty = onEmpty;
    this.unsubscribe = backend.subscribe(id, {
      serverChanged: (event) => this.tell(eventBytes('server', event)),
      hostedChanged: (event) => this.tell(eventBytes('hosted', event)),
      projectRemoved: () => this.endAll(),
    });
    this.timer = setInterval(() => this.tell(sseKeepAlive), KEEP_ALIVE_MS);
    this.timer.unref();
  }

  add(reader: EventReader): void {
    this.readers.add(reader);
  }

  remove(reader: EventReader): void {
    if (!this.readers.delete(reader) || this.readers.size > 0) return;
    clearInterval(this.timer);
    this.unsubscribe();
    this.onEmpty();
  }

  end(reader: EventReader): void {
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

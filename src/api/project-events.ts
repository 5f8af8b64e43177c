import type { HostedEvent } from './hosted-views.ts';
import { type EventStream, eventBytes } from './http/event-stream.ts';
import type { Sight } from './sight.ts';
import type { ServerEvent } from './views.ts';

type Follower = Pick<Sight, 'isFull' | 'eventOf'>;

/** The clients that follow the servers of a project. */
export class ProjectEvents {
  private readonly streams = new Map<string, Map<EventStream, Follower>>();

  get projectCount(): number {
    return this.streams.size;
  }

  /** `follower`: what the client of the stream sees. Returns a function that unsubscribes. */
  subscribe({ id }: { id: string }, stream: EventStream, follower: Follower): () => void {
    const streams = this.streams.get(id) ?? new Map<EventStream, Follower>();
    this.streams.set(id, streams.set(stream, follower));
    return () => {
      streams.delete(stream);
      if (streams.size === 0 && this.streams.get(id) === streams) this.streams.delete(id);
    };
  }

  serverChanged({ id }: { id: string }, event: ServerEvent): void {
    let bytes: Buffer | undefined;
    for (const [stream, follower] of this.streams.get(id) ?? []) {
      if (follower.isFull) {
        bytes ??= eventBytes('server', event);
        stream.send(bytes);
        continue;
      }
      const visible = follower.eventOf(event);
      if (visible !== undefined) stream.send(eventBytes('server', visible));
    }
  }

  /** For those who operate the project. */
  hostedChanged({ id }: { id: string }, event: HostedEvent): void {
    let bytes: Buffer | undefined;
    for (const [stream, { isFull }] of this.streams.get(id) ?? []) {
      if (!isFull) continue;
      bytes ??= eventBytes('hosted', event);
      stream.send(bytes);
    }
  }

  projectRemoved({ id }: { id: string }): void {
    for (const stream of this.streams.get(id)?.keys() ?? []) stream.end();
  }
}

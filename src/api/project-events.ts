import type { HostedEvent } from './hosted-views.ts';
import { type EventStream, eventBytes } from './http/event-stream.ts';
import type { ServerEvent } from './views.ts';

/** The clients that follow the servers of a project. */
export class ProjectEvents {
  private readonly streams = new Map<string, Set<EventStream>>();

  get projectCount(): number {
    return this.streams.size;
  }

  /** Returns a function that unsubscribes. */
  subscribe({ id }: { id: string }, stream: EventStream): () => void {
    const streams = this.streams.get(id) ?? new Set();
    this.streams.set(id, streams.add(stream));
    return () => {
      streams.delete(stream);
      if (streams.size === 0 && this.streams.get(id) === streams) this.streams.delete(id);
    };
  }

  serverChanged(project: { id: string }, event: ServerEvent): void {
    this.send(project.id, 'server', event);
  }

  hostedChanged(project: { id: string }, event: HostedEvent): void {
    this.send(project.id, 'hosted', event);
  }

  projectRemoved({ id }: { id: string }): void {
    for (const stream of this.streams.get(id) ?? []) stream.end();
  }

  private send(projectId: string, type: string, event: object): void {
    const streams = this.streams.get(projectId);
    if (streams === undefined) return;
    const bytes = eventBytes(type, event);
    for (const stream of streams) stream.send(bytes);
  }
}

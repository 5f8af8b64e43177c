import type { ProjectListener } from '../api/backend.ts';
import type { HostedEvent } from '../api/hosted-views.ts';
import type { ServerEvent } from '../api/views.ts';
import type { LiveProject } from '../projects/live-project.ts';

/** Those who want to know of every transition of a project's servers. */
export class Followers {
  private readonly byProject = new Map<string, Set<ProjectListener>>();

  /** Gives what ends it. */
  follow({ id }: LiveProject, listener: ProjectListener): () => void {
    const listeners = this.byProject.get(id) ?? new Set();
    this.byProject.set(id, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.byProject.get(id) === listeners) this.byProject.delete(id);
    };
  }

  changed({ id }: LiveProject, event: ServerEvent): void {
    for (const listener of this.byProject.get(id) ?? []) listener.serverChanged(event);
  }

  hostedChanged({ id }: LiveProject, event: HostedEvent): void {
    for (const listener of this.byProject.get(id) ?? []) listener.hostedChanged(event);
  }

  removed({ id }: LiveProject): void {
    for (const listener of this.byProject.get(id) ?? []) listener.projectRemoved();
    this.byProject.delete(id);
  }
}

import type { Server } from '../../upstreams/server.ts';
import { EnvironmentMask } from '../environment-mask.ts';
import type { HostedRow } from '../hosted-rows.ts';
import type { LiveProject } from '../live-project.ts';
import type { Projects } from '../projects.ts';

export interface RegisteredServer {
  row: HostedRow;
  project: LiveProject;
}

export class RegisteredServers {
  private readonly projects: Projects;
  private readonly masks = new WeakMap<LiveProject, EnvironmentMask>();

  constructor(projects: Projects) {
    this.projects = projects;
  }

  all(): RegisteredServer[] {
    return this.projects.list().flatMap((project) => project.hosted.map((row) => ({ row, project })));
  }

  find(id: string): RegisteredServer | undefined {
    return this.all().find(({ row }) => row.id === id);
  }

  nameOf(id: string): string {
    return this.find(id)?.row.name ?? id;
  }

  /** Undefined while it is disabled. */
  server(id: string): Server | undefined {
    const { project, row } = this.find(id) ?? {};
    return row && project?.servers.get(row.name);
  }

  redact(projectId: string, text: string): string {
    const project = this.projects.lookUp(projectId);
    if (project === undefined) return text;
    let mask = this.masks.get(project);
    if (mask === undefined) {
      mask = new EnvironmentMask();
      this.masks.set(project, mask);
    }
    return mask.apply(project.vault.redact(text), project.hosted);
  }

  /** Identifies the database: the default project is created with it, under a unique id. */
  get owner(): string {
    return this.projects.list().find(({ isDefault }) => isDefault)?.id ?? 'unknown';
  }
}

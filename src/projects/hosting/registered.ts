import type { Server } from '../../upstreams/server.ts';
import { EnvironmentMask } from '../environment-mask.ts';
import type { HostedRow } from '../hosted-rows.ts';
import type { LiveProject } from '../live-project.ts';
import type { Projects } from '../projects.ts';

/** A row and its project, whether it runs or not. */
export interface RegisteredServer {
  row: HostedRow;
  project: LiveProject;
}

/** The hosted servers of all projects. */
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

  /** The gateway's view of it; undefined while it is disabled. */
  server(id: string): Server | undefined {
    const { project, row } = this.find(id) ?? {};
    return row && project?.servers.get(row.name);
  }

  /** Masks the secrets of a project, and the environment of its hosted servers. */
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

  /** Identifies the database: the default project is created with it, and its id is unique. */
  get owner(): string {
    return this.projects.list().find(({ isDefault }) => isDefault)?.id ?? 'unknown';
  }
}

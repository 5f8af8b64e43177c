import type { Group } from '../upstreams/group.ts';
import type { Servers } from '../upstreams/servers.ts';
import type { Places } from './contributions.ts';
import type { AbsentServer, Explainer } from './resolve.ts';

/** A server that is not used, as far as it explains why a name is unknown. */
export interface DisabledServer {
  name: string;
  prefix: string;
  /** What it called its tools and prompts when it was last used. */
  offered: ReadonlySet<string>;
  /** Why it is not used, and what to do about it. */
  why: string;
}

/** A project, as far as it explains why something is not listed. */
interface ExplainedProject {
  readonly name: string;
  readonly isDefault: boolean;
  readonly servers: Servers;
  isSwitchedOff(group: string, tool: string): boolean;
  disabledServers(): Iterable<DisabledServer>;
}

/** Why something that a client asks for is not listed. */
export class Unlisted implements Explainer {
  readonly catalog: Explainer['catalog'];
  private readonly projects: readonly ExplainedProject[];
  private readonly places: Places;

  constructor(projects: readonly ExplainedProject[], places: Places, catalog: Explainer['catalog']) {
    this.projects = projects;
    this.places = places;
    this.catalog = catalog;
  }

  absent(): AbsentServer[] {
    return this.projects.flatMap((project) =>
      project.servers
        .all()
        .filter(({ isSeen, isRemembered }) => !isSeen && !isRemembered)
        .map(({ name, config, condition }) => ({
          name,
          project: this.projects.length > 1 ? project.name : undefined,
          qualifier: this.places.qualifierIn(project, config.prefix ?? name),
          why: condition.reason?.message ?? `Server "${name}" has not said yet what it offers.`,
        })),
    );
  }

  isSwitchedOff(name: string): boolean {
    for (const { project, group, qualifier } of this.groups()) {
      const own = name.startsWith(qualifier) ? name.slice(qualifier.length) : name;
      if (project.isSwitchedOff(group.name, name) || project.isSwitchedOff(group.name, own)) return true;
      if (group.members.some((server) => server.leavesOut(name) || server.leavesOut(own))) return true;
    }
    return false;
  }

  disabledOwner(name: string): string | undefined {
    for (const project of this.projects) {
      for (const { prefix, offered, why } of project.disabledServers()) {
        if (name.startsWith(this.places.qualifierIn(project, prefix)) || offered.has(name)) return why;
      }
    }
    return undefined;
  }

  isOfKnown(name: string): boolean {
    for (const { qualifier } of this.groups()) if (name.startsWith(qualifier)) return true;
    return false;
  }

  private *groups(): Generator<{ project: ExplainedProject; group: Group; qualifier: string }> {
    for (const project of this.projects) {
      for (const group of project.servers.groups()) {
        yield { project, group, qualifier: this.places.qualifierOf(project, group) };
      }
    }
  }
}

import type { Contribution } from '../catalog/contribution.ts';
import { type ServerConfig, toolFilter } from '../config.ts';
import type { Group } from '../upstreams/group.ts';
import type { Offer } from '../upstreams/lists.ts';

const nothing: Offer = { tools: [], resources: [], templates: [], prompts: [] };

/** A project, as far as names depend on it. */
interface NamedProject {
  readonly name: string;
  readonly isDefault: boolean;
  isSwitchedOff(group: string, tool: string): boolean;
}

/** What servers are called in a scope: of one project, or of all. */
export class Places {
  private readonly isOfOne: boolean;
  private readonly separator: string;

  constructor(isOfOne: boolean, separator: string) {
    this.isOfOne = isOfOne;
    this.separator = separator;
  }

  /**
   * What stands for a server in URIs. Names are unique in a project only. A slash cannot be in a name, so nothing that
   * is added later changes what a place means.
   */
  placeIn(project: NamedProject, name: string): string {
    return this.isPlain(project) ? name : `${project.name}/${name}`;
  }

  prefixIn(project: NamedProject, prefix: string): string {
    return this.isPlain(project) ? prefix : project.name + this.separator + prefix;
  }

  /** What the qualified names of a server with this prefix begin with. */
  qualifierIn(project: NamedProject, prefix: string): string {
    return this.prefixIn(project, prefix) + this.separator;
  }

  /** What the qualified names of a group begin with. */
  qualifierOf(project: NamedProject, group: Group): string {
    return this.qualifierIn(project, prefixOf(group));
  }

  /** What a group brings into the catalog. */
  contribution(project: NamedProject, group: Group, withSwitches: boolean): Contribution {
    const { name, members } = group;
    const switchedOff = new Set<string>();
    const isOffered = (own: string, filter: ReturnType<typeof toolFilter>) => {
      if (filter?.(own) === false) return false;
      if (project.isSwitchedOff(name, own)) switchedOff.add(own);
      return !switchedOff.has(own);
    };
    const offeredTools = ({ tools: choice }: ServerConfig, { tools }: Offer) => {
      const filter = toolFilter(choice);
      return withSwitches ? tools.filter((tool) => isOffered(String(tool.name), filter)) : tools;
    };
    return {
      place: this.placeIn(project, name),
      group: name,
      project: project.isDefault ? undefined : project.name,
      prefix: this.prefixIn(project, prefixOf(group)),
      servers: members.map(({ config, offer = nothing }) => ({
        server: config.name,
        place: this.placeIn(project, config.name),
        prefix: this.prefixIn(project, config.prefix ?? config.name),
        ...offer,
        tools: offeredTools(config, offer),
      })),
      switchedOff: [...switchedOff],
    };
  }

  private isPlain({ isDefault }: NamedProject): boolean {
    return isDefault || this.isOfOne;
  }
}

function prefixOf({ name, members }: Group): string {
  const [first] = members;
  const isOne = members.length === 1 && first?.name === name;
  return isOne ? (first.config.prefix ?? name) : name;
}

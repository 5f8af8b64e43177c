import type { Contribution } from '../catalog/catalog.ts';
import { type ServerConfig, toolFilter } from '../config.ts';
import type { Offer } from '../upstreams/discovery.ts';
import type { Group } from '../upstreams/group.ts';

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

  /** What the qualified names of a group begin with. */
  qualifierOf(project: NamedProject, group: Group): string {
    return this.prefixIn(project, prefixOf(group)) + this.separator;
  }

  /** What a group brings into the catalog. */
  contribution(project: NamedProject, group: Group, withSwitches: boolean): Contribution {
    const { name, members } = group;
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
        tools: withSwitches ? offeredTools(project, name, config, offer.tools) : offer.tools,
      })),
    };
  }

  private isPlain({ isDefault }: NamedProject): boolean {
    return isDefault || this.isOfOne;
  }
}

/** Those that are neither switched off in the project nor left out by the configuration of their server. */
function offeredTools(
  project: NamedProject,
  group: string,
  { tools: choice }: ServerConfig,
  tools: Offer['tools'],
): Offer['tools'] {
  const isOffered = toolFilter(choice);
  return tools.filter(({ name }) => {
    const own = String(name);
    return isOffered?.(own) !== false && !project.isSwitchedOff(group, own);
  });
}

function prefixOf({ name, members }: Group): string {
  const [first] = members;
  const isOne = members.length === 1 && first?.name === name;
  return isOne ? (first.config.prefix ?? name) : name;
}

import type { Contribution, ListName } from '../catalog/contribution.ts';
import { type ServerConfig, toolFilter } from '../config.ts';
import type { Item } from '../identity/rules.ts';
import type { Group } from '../upstreams/group.ts';
import type { Offer } from '../upstreams/lists.ts';
import { hiddenItems, isHidden } from './items.ts';

const none: ReadonlySet<string> = new Set();
const nothing: Offer = { tools: [], resources: [], templates: [], prompts: [] };

interface NamedProject {
  readonly name: string;
  readonly isDefault: boolean;
  isSwitchedOff(group: string, tool: string): boolean;
  /** Undefined if everything is visible. */
  readonly isVisible: ((item: Item) => boolean) | undefined;
}

export class Qualifiers {
  private readonly isOfOne: boolean;
  private readonly separator: string;

  constructor(isOfOne: boolean, separator: string) {
    this.isOfOne = isOfOne;
    this.separator = separator;
  }

  /** Server names have no slash, so a server that is added later cannot change the meaning of a qualifier. */
  qualifier(project: NamedProject, name: string): string {
    return this.isPlain(project) ? name : `${project.name}/${name}`;
  }

  namePrefix(project: NamedProject, prefix: string): string {
    return this.prefix(project, prefix) + this.separator;
  }

  groupPrefix(project: NamedProject, group: Group): string {
    return this.namePrefix(project, prefixOf(group));
  }

  contribution(project: NamedProject, group: Group, withSwitches: boolean): Contribution {
    const { name, members } = group;
    const switchedOff = new Set<string>();
    const isOffered = (own: string, filter: ReturnType<typeof toolFilter>) => {
      if (filter?.(own) === false) return false;
      if (project.isSwitchedOff(name, own)) switchedOff.add(own);
      return !switchedOff.has(own);
    };
    const hidden = project.isVisible && hiddenItems(group, project.isVisible);
    const visible = <Listed extends object>(list: ListName, items: readonly Listed[]): readonly Listed[] =>
      hidden === undefined ? items : items.filter((item) => !isHidden(hidden, list, item));
    const offeredTools = ({ tools: choice }: ServerConfig, { tools }: Offer) => {
      const filter = toolFilter(choice);
      return withSwitches ? tools.filter((tool) => isOffered(String(tool.name), filter)) : tools;
    };
    return {
      qualifier: this.qualifier(project, name),
      group: name,
      project: project.isDefault ? undefined : project.name,
      prefix: this.prefix(project, prefixOf(group)),
      servers: members.map(({ config, offer = nothing }) => ({
        server: config.name,
        qualifier: this.qualifier(project, config.name),
        prefix: this.prefix(project, config.prefix ?? config.name),
        prompts: visible('prompts', offer.prompts),
        resources: visible('resources', offer.resources),
        templates: visible('templates', offer.templates),
        tools: visible('tools', offeredTools(config, offer)),
      })),
      reserved: {
        tools: [...switchedOff.union(hidden?.tools ?? none)],
        prompts: [...(hidden?.prompts ?? none)],
      },
    };
  }

  private prefix(project: NamedProject, prefix: string): string {
    return this.isPlain(project) ? prefix : project.name + this.separator + prefix;
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

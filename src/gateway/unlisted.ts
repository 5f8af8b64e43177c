import type { NamedKind } from '../catalog/contribution.ts';
import { SwitchboardError } from '../errors.ts';
import type { Item } from '../identity/rules.ts';
import type { Message } from '../protocol/message.ts';
import type { Group } from '../upstreams/group.ts';
import type { Server } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';
import type { Qualifiers } from './contributions.ts';
import { itemOf } from './items.ts';
import { completionReference } from './resolve.ts';

export interface DisabledServer {
  name: string;
  prefix: string;
  offered: ReadonlySet<string>;
  /** Includes what to do about it. */
  why: string;
}

interface AbsentServer {
  name: string;
  /** Set if the scope has several projects. */
  project: string | undefined;
  prefix: string;
  why: string;
}

interface ExplainedProject {
  readonly name: string;
  readonly isDefault: boolean;
  readonly servers: Servers;
  readonly isVisible: ((item: Item) => boolean) | undefined;
  readonly showsServer: ((server: Server) => boolean) | undefined;
  isSwitchedOff(group: string, tool: string): boolean;
  disabledServers(): Iterable<DisabledServer>;
}

interface SimilarNames {
  similar(kind: NamedKind, name: string): readonly string[];
}

/** More would bury the rest of the error. */
const MAX_ABSENT = 3;
const namedKinds: Partial<Record<string, NamedKind>> = { unknown_tool: 'tools', unknown_prompt: 'prompts' };

export class Unlisted {
  private readonly catalog: SimilarNames;
  private readonly projects: readonly ExplainedProject[];
  private readonly qualifiers: Qualifiers;

  constructor(projects: readonly ExplainedProject[], qualifiers: Qualifiers, catalog: SimilarNames) {
    this.projects = projects;
    this.qualifiers = qualifiers;
    this.catalog = catalog;
  }

  /** The target does not exist, is switched off, or belongs to a server that never connected. */
  explain(message: Message): SwitchboardError {
    const absent = this.absent();
    const name = message.name?.value ?? '';
    const owner = absent.find(({ prefix }) => name.startsWith(prefix));
    if (owner !== undefined)
      return new SwitchboardError('server_unavailable', owner.why, { data: { server: owner.name } });
    const error = unknown(message);
    if (error.code === 'unknown_tool' && this.isSwitchedOff(name))
      return new SwitchboardError(error.code, `${error.message} (it is switched off)`);
    const kind = namedKinds[error.code];
    const disabled = kind && this.disabledOwner(name);
    if (disabled !== undefined) return new SwitchboardError(error.code, `${error.message} (${disabled})`);
    const similar = kind === undefined ? [] : this.catalog.similar(kind, name);
    if (similar.length > 0) {
      const question = `${error.message}. Did you mean ${similar.join(' or ')}?`;
      return new SwitchboardError(error.code, question, { data: { ...error.data, similar } });
    }
    if (absent.length === 0 || (kind !== undefined && this.hasKnownPrefix(name))) return error;
    return withAbsent(error, absent);
  }

  private absent(): AbsentServer[] {
    return this.projects.flatMap((project) =>
      project.servers
        .all()
        .filter((server) => project.showsServer?.(server) ?? true)
        .filter(({ isDiscovered, hasSnapshot }) => !isDiscovered && !hasSnapshot)
        .map(({ name, config, condition }) => ({
          name,
          project: this.projects.length > 1 ? project.name : undefined,
          prefix: this.qualifiers.namePrefix(project, config.prefix ?? name),
          why: condition.reason?.message ?? `Server "${name}" has not reported yet what it offers.`,
        })),
    );
  }

  private isSwitchedOff(name: string): boolean {
    for (const { project, group, prefix } of this.groups()) {
      const own = name.startsWith(prefix) ? name.slice(prefix.length) : name;
      if (project.isVisible?.(itemOf(group, 'tools', own)) === false) continue;
      if (project.isSwitchedOff(group.name, name) || project.isSwitchedOff(group.name, own)) return true;
      if (group.members.some((server) => server.leavesOut(name) || server.leavesOut(own))) return true;
    }
    return false;
  }

  private disabledOwner(name: string): string | undefined {
    for (const project of this.projects) {
      // What a disabled server offered cannot be checked against rules.
      if (project.isVisible !== undefined) continue;
      for (const { prefix, offered, why } of project.disabledServers()) {
        if (name.startsWith(this.qualifiers.namePrefix(project, prefix)) || offered.has(name)) return why;
      }
    }
    return undefined;
  }

  private hasKnownPrefix(name: string): boolean {
    for (const { prefix } of this.groups()) if (name.startsWith(prefix)) return true;
    return false;
  }

  private *groups(): Generator<{ project: ExplainedProject; group: Group; prefix: string }> {
    for (const project of this.projects) {
      for (const group of project.servers.groups()) {
        if (project.showsServer !== undefined && !group.members.some(project.showsServer)) continue;
        yield { project, group, prefix: this.qualifiers.groupPrefix(project, group) };
      }
    }
  }
}

function withAbsent(error: SwitchboardError, absent: readonly AbsentServer[]): SwitchboardError {
  const shown = absent.slice(0, MAX_ABSENT);
  const texts = shown.map(({ name, project }) =>
    project === undefined ? `"${name}"` : `"${name}" of project "${project}"`,
  );
  const more = absent.length - shown.length;
  const who = more > 0 ? `${texts.join(', ')} and ${more} more offer` : `${texts.join(', ')} offers`;
  const names = shown.map(({ project, name }) => (project === undefined ? name : `${project}/${name}`));
  return new SwitchboardError(error.code, `${error.message} (not known yet: what ${who})`, {
    data: { ...error.data, absent: names },
  });
}

function unknown(message: Message): SwitchboardError {
  switch (message.method) {
    case 'tools/call':
      return new SwitchboardError('unknown_tool', `Unknown tool: ${message.name?.value}`);
    case 'prompts/get':
      return new SwitchboardError('unknown_prompt', `Unknown prompt: ${message.name?.value}`);
    case 'completion/complete': {
      const { named } = completionReference(message);
      return new SwitchboardError('invalid_params', `Unknown reference: ${named.value}`);
    }
    default:
      return new SwitchboardError('unknown_resource', `Unknown resource: ${message.uri?.value}`, {
        data: { uri: message.uri?.value },
      });
  }
}

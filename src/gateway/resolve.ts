import type { Route } from '../catalog/catalog.ts';
import type { NamedKind } from '../catalog/contribution.ts';
import { SwitchboardError } from '../errors.ts';
import type { Message, Routed } from '../protocol/envelope.ts';
import { bytesOf } from '../protocol/jsonrpc.ts';
import type { Edit } from '../protocol/splice.ts';
import type { OfferKind } from '../upstreams/lists.ts';

/** Where a request goes, and what has to change in it on the way. */
export interface Target {
  route: Route;
  kind: OfferKind;
  edits: Edit[];
}

/** Where names and URIs lead. */
interface Ways {
  tool(name: string): Route | undefined;
  prompt(name: string): Route | undefined;
  resource(uri: string): Route | undefined;
}

/** Finds the group of a request that names a tool, a prompt or a resource. */
export function resolve(ways: Ways, message: Message): Target | undefined {
  switch (message.method) {
    case 'tools/call':
      return target('tools', message.name, ways.tool(required(message.name, 'name')));
    case 'prompts/get':
      return target('prompts', message.name, ways.prompt(required(message.name, 'name')));
    case 'resources/read':
      return target('resources', message.uri, ways.resource(required(message.uri, 'uri')));
    case 'completion/complete': {
      const { place, isResource } = reference(message);
      return isResource
        ? target('templates', place, ways.resource(place.value))
        : target('prompts', place, ways.prompt(place.value));
    }
    default:
      throw new SwitchboardError('internal', `No way is known for ${message.method}.`);
  }
}

/** A server of which nobody knows what it offers. */
export interface AbsentServer {
  name: string;
  /** Whose it is, where servers of several projects are seen. */
  project: string | undefined;
  /** What its qualified names begin with. */
  qualifier: string;
  why: string;
}

/** What tells why something is not there. */
export interface Explainer {
  /** The servers that were never seen. */
  absent(): AbsentServer[];
  /** Whether a tool of that name, plain or qualified, would be there if it had not been switched off. */
  isSwitchedOff(tool: string): boolean;
  /** Why the server is not used that would have it; undefined where none is known to. */
  disabledOwner(name: string): string | undefined;
  /** Whether a name begins like those of a server whose names are known. */
  isOfKnown(name: string): boolean;
  catalog: { similar(kind: NamedKind, name: string): readonly string[] };
}

/** Why nobody has it: it does not exist, was switched off, or whose it is was never seen. */
export function unknownTarget(message: Message, scope: Explainer): SwitchboardError {
  const absent = scope.absent();
  const name = message.name?.value ?? '';
  const owner = absent.find(({ qualifier }) => name.startsWith(qualifier));
  if (owner !== undefined)
    return new SwitchboardError('server_unavailable', owner.why, { data: { server: owner.name } });
  const error = unknown(message);
  if (error.code === 'unknown_tool' && scope.isSwitchedOff(name)) {
    return new SwitchboardError(error.code, `${error.message} (it is switched off)`);
  }
  const kind = kinds[error.code];
  const disabled = kind === undefined ? undefined : scope.disabledOwner(name);
  if (disabled !== undefined) return new SwitchboardError(error.code, `${error.message} (${disabled})`);
  const similar = kind === undefined ? [] : scope.catalog.similar(kind, name);
  if (similar.length > 0) {
    const question = `${error.message}. Did you mean ${similar.join(' or ')}?`;
    return new SwitchboardError(error.code, question, { data: { ...error.data, similar } });
  }
  if (absent.length === 0 || (kind !== undefined && scope.isOfKnown(name))) return error;
  const named = absent.slice(0, MAX_ABSENT);
  const maybe = `${error.message} (not known yet: what ${absentText(named, absent.length)})`;
  const names = named.map(({ project, name: server }) =>
    project === undefined ? server : `${project}/${server}`,
  );
  return new SwitchboardError(error.code, maybe, { data: { ...error.data, absent: names } });
}

/** More would hide what the error says. */
const MAX_ABSENT = 3;

function absentText(named: readonly AbsentServer[], count: number): string {
  const texts = named.map(({ name, project }) =>
    project === undefined ? `"${name}"` : `"${name}" of project "${project}"`,
  );
  return count > named.length
    ? `${texts.join(', ')} and ${count - named.length} more offer`
    : `${texts.join(', ')} offers`;
}

const kinds: Partial<Record<string, NamedKind>> = { unknown_tool: 'tools', unknown_prompt: 'prompts' };

function unknown(message: Message): SwitchboardError {
  switch (message.method) {
    case 'tools/call':
      return new SwitchboardError('unknown_tool', `Unknown tool: ${message.name?.value}`);
    case 'prompts/get':
      return new SwitchboardError('unknown_prompt', `Unknown prompt: ${message.name?.value}`);
    case 'completion/complete':
      return new SwitchboardError('invalid_params', `Unknown reference: ${reference(message).place.value}`);
    default:
      return new SwitchboardError('unknown_resource', `Unknown resource: ${message.uri?.value}`, {
        data: { uri: message.uri?.value },
      });
  }
}

function target(kind: OfferKind, place: Routed | undefined, route: Route | undefined): Target | undefined {
  if (place === undefined || route === undefined) return undefined;
  const edits =
    place.value === route.own ? [] : [{ start: place.start, end: place.end, bytes: bytesOf(route.own) }];
  return { route, kind, edits };
}

export function required(place: Routed | undefined, key: string): string {
  if (place === undefined) throw new SwitchboardError('invalid_params', `params.${key} must be a string.`);
  return place.value;
}

/** What a completion is asked for: `params.ref` names a prompt or a resource template. */
function reference({ reference: asked }: Message): { place: Routed; isResource: boolean } {
  const isResource = asked?.type?.value === 'ref/resource';
  const place = isResource ? asked?.uri : asked?.name;
  if (place === undefined) {
    throw new SwitchboardError(
      'invalid_params',
      'params.ref must be {"type": "ref/prompt", "name"} or {"type": "ref/resource", "uri"}.',
    );
  }
  return { place, isResource };
}

import type { Catalog, Route } from '../catalog/catalog.ts';
import { SwitchboardError } from '../errors.ts';
import type { Message, Routed } from '../protocol/envelope.ts';
import { bytesOf } from '../protocol/jsonrpc.ts';
import type { Edit } from '../protocol/splice.ts';
import type { OfferKind } from '../upstreams/discovery.ts';

/** Where a request goes, and what has to change in it on the way. */
export interface Target {
  route: Route;
  kind: OfferKind;
  edits: Edit[];
}

/** Finds the group of a request that names a tool, a prompt or a resource. */
export function resolve(catalog: Catalog, message: Message): Target | undefined {
  switch (message.method) {
    case 'tools/call':
      return target('tools', message.name, catalog.tool(required(message.name, 'name')));
    case 'prompts/get':
      return target('prompts', message.name, catalog.prompt(required(message.name, 'name')));
    case 'resources/read':
      return target('resources', message.uri, catalog.resource(required(message.uri, 'uri')));
    case 'completion/complete': {
      const { place, isResource } = reference(message);
      return isResource
        ? target('templates', place, catalog.resource(place.value))
        : target('prompts', place, catalog.prompt(place.value));
    }
    default:
      throw new SwitchboardError('internal', `No way is known for ${message.method}.`);
  }
}

/** A server of which nobody knows what it offers. */
export interface AbsentServer {
  name: string;
  /** What its qualified names begin with. */
  qualifier: string;
  why: string;
}

/** What tells why something is not there. */
interface Explainer {
  absent(): AbsentServer[];
  isSwitchedOff(tool: string): boolean;
}

/** Why nobody has it: it does not exist, was switched off, or whose it is was never seen. */
export function unknownTarget(message: Message, scope: Explainer): SwitchboardError {
  const absent = scope.absent();
  const owner = absent.find(({ qualifier }) => message.name?.value.startsWith(qualifier));
  if (owner !== undefined)
    return new SwitchboardError('server_unavailable', owner.why, { data: { server: owner.name } });
  const error = unknown(message);
  if (error.code === 'unknown_tool' && scope.isSwitchedOff(message.name?.value ?? '')) {
    return new SwitchboardError(error.code, `${error.message} (it is switched off)`);
  }
  if (absent.length === 0) return error;
  const names = absent.map(({ name }) => name);
  const maybe = `${error.message} (not known yet: what ${names.map((name) => `"${name}"`).join(', ')} offers)`;
  return new SwitchboardError(error.code, maybe, { data: { ...error.data, absent: names } });
}

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

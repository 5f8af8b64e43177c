import type { Route } from '../catalog/catalog.ts';
import { SwitchboardError } from '../errors.ts';
import { bytesOf } from '../protocol/jsonrpc.ts';
import type { Message, StringSpan } from '../protocol/message.ts';
import type { Edit } from '../protocol/splice.ts';
import type { OfferKind } from '../upstreams/lists.ts';

/** Where a request goes, and the edits that it needs. */
export interface Target {
  route: Route;
  kind: OfferKind;
  edits: Edit[];
}

interface Routes {
  tool(name: string): Route | undefined;
  prompt(name: string): Route | undefined;
  resource(uri: string): Route | undefined;
}

export function isCall(method: string): boolean {
  return callMethods.has(method);
}

const callMethods: ReadonlySet<string> = new Set([
  'tools/call',
  'prompts/get',
  'resources/read',
  'completion/complete',
]);

export function resolve(routes: Routes, message: Message): Target | undefined {
  switch (message.method) {
    case 'tools/call':
      return target('tools', message.name, routes.tool(required(message.name, 'name')));
    case 'prompts/get':
      return target('prompts', message.name, routes.prompt(required(message.name, 'name')));
    case 'resources/read':
      return target('resources', message.uri, routes.resource(required(message.uri, 'uri')));
    case 'completion/complete': {
      const { named, isResource } = completionReference(message);
      return isResource
        ? target('templates', named, routes.resource(named.value))
        : target('prompts', named, routes.prompt(named.value));
    }
    default:
      throw new SwitchboardError('internal', `${message.method} is not routed to servers.`);
  }
}

function target(
  kind: OfferKind,
  named: StringSpan | undefined,
  route: Route | undefined,
): Target | undefined {
  if (named === undefined || route === undefined) return undefined;
  const edits =
    named.value === route.own ? [] : [{ start: named.start, end: named.end, bytes: bytesOf(route.own) }];
  return { route, kind, edits };
}

export function required(named: StringSpan | undefined, key: string): string {
  if (named === undefined) throw new SwitchboardError('invalid_params', `params.${key} must be a string.`);
  return named.value;
}

/** The prompt or resource template that `params.ref` of a completion names. */
export function completionReference({ reference }: Message): { named: StringSpan; isResource: boolean } {
  const isResource = reference?.type?.value === 'ref/resource';
  const named = isResource ? reference?.uri : reference?.name;
  if (named !== undefined) return { named, isResource };
  const expected = '{"type": "ref/prompt", "name"} or {"type": "ref/resource", "uri"}';
  throw new SwitchboardError('invalid_params', `params.ref must be ${expected}.`);
}

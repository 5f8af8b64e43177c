import { SwitchboardError } from '../errors.ts';
import type { AccessControl } from '../identity/access-control.ts';
import type { Permissions } from '../identity/permissions.ts';
import type { Item } from '../identity/rules.ts';
import type { Message } from '../protocol/message.ts';
import type { Group } from '../upstreams/group.ts';
import type { Incoming } from './caller.ts';
import { itemOf, serversOf } from './items.ts';
import { resolve, type Target } from './resolve.ts';
import type { InFlight } from './responder.ts';
import type { Scope } from './scope.ts';

export interface Authorizer {
  readonly access: AccessControl;
}

/** Throws if the caller may not use the target. Tools and prompts that it may not use are not in the catalog of its scope. */
export function authorize(
  scope: Scope,
  incoming: Incoming,
  { route, kind }: Target,
  group: Group,
  { access }: Authorizer,
): void {
  const { caller, address, message } = incoming;
  const { principal } = caller;
  if (principal.permissions.isUnrestricted) return;
  if (kind === 'tools' || kind === 'prompts') {
    access.authorize({ principal, address }, 'call', group.project, route.own);
    return;
  }
  const item = { ...itemOf(group, kind, route.own), ...revealedBy(message) };
  access.authorizeItem({ principal, address }, group.project, item, () => scope.explainUnknown(message));
}

/** A completion may reveal every URI of a template that its parameters leave open. As written, because servers differ in what they read. */
function revealedBy({ method, bytes, params, reference }: Message): Pick<Item, 'revealsAll' | 'input'> {
  const uri = reference?.uri;
  if (method !== 'completion/complete' || params === undefined || uri === undefined) return {};
  const text = (start: number, end: number) => bytes.toString('utf8', start, end);
  return { revealsAll: true, input: text(params.start, uri.start) + text(uri.end, params.end) };
}

/** Throws if the caller may not read the resource. A resource that does not exist is left to others. */
export function authorizeResource(scope: Scope, incoming: Incoming, uri: string, services: Authorizer): void {
  if (incoming.caller.principal.permissions.isUnrestricted) return;
  const route = scope.catalog.resource(uri);
  const group = route && scope.group(route.group);
  if (route === undefined || group === undefined) return;
  authorize(scope, incoming, { route, kind: 'resources', edits: [] }, group, services);
}

/** Throws if the caller may call nothing of the group or does not see it, for requests about what an earlier call began. */
export function authorizeGroup(
  { caller, address }: Incoming,
  group: Group,
  { access }: Authorizer,
  unknown: () => SwitchboardError,
): void {
  const { principal } = caller;
  if (principal.permissions.isUnrestricted) return;
  access.authorize({ principal, address }, 'call', group.project, group.name);
  const rules = principal.permissions.rulesIn(group.project.id);
  if (rules?.showsServer(serversOf(group)) === false) throw unknown();
}

/** Throws if the caller may call nothing at all, so that errors tell it nothing of servers. */
export function authorizeSome(
  scope: Scope,
  { caller, address, message }: Incoming,
  { access }: Authorizer,
): void {
  const { principal } = caller;
  const { project } = scope;
  const mayCall =
    project === undefined
      ? principal.permissions.mayAnywhere('call')
      : principal.permissions.may('call', project.id);
  if (!mayCall) access.authorize({ principal, address }, 'call', project, message.method);
}

/** Throws if what the request names exists, but is hidden from the caller. */
export function authorizeHidden(scope: Scope, incoming: Incoming, { access }: Authorizer): void {
  const { caller, address, message } = incoming;
  const { full } = scope;
  if (full === undefined) return;
  const hidden = resolve(full.catalog, message);
  const group = hidden && full.group(hidden.route.group);
  if (hidden === undefined || group === undefined) return;
  const item = itemOf(group, hidden.kind, hidden.route.own);
  access.authorizeItem({ principal: caller.principal, address }, group.project, item, () =>
    scope.explainUnknown(message),
  );
}

/** Fails the requests in flight in projects where their sender may call nothing any more. */
export function failForbidden(requests: Iterable<InFlight>, permissions: Permissions): void {
  for (const request of [...requests].toReversed()) {
    const project = request.group?.project;
    if (project === undefined || permissions.may('call', project.id)) continue;
    request.fail(new SwitchboardError('forbidden', 'The permission for this call was withdrawn.'));
  }
}

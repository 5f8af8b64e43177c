import { Delivery } from '../upstreams/delivery.ts';
import type { RoutedRequest } from '../upstreams/routed-request.ts';
import { authorize, authorizeHidden, authorizeSome } from './authorize.ts';
import { readCallOptions } from './call-options.ts';
import type { Incoming } from './caller.ts';
import { type CallServices, ClientCall } from './client-call.ts';
import { resolveFormer } from './former-names.ts';
import { checkParameters } from './modern/header-checks.ts';
import { resolve, type Target } from './resolve.ts';
import { after, reject, rejectDuplicate } from './respond.ts';
import type { CallContext } from './response-mapping.ts';
import { firstRound, laterRound } from './rounds.ts';
import type { Scope } from './scope.ts';

/** One client request that a server responds to: resolve, authorize, pick, forward. `ClientCall` maps the response back. */
export function call(scope: Scope, incoming: Incoming, services: CallServices): void {
  const target = find(scope, incoming);
  if (target !== undefined) forward(scope, incoming, target, services);
  else
    after(incoming, scope.discovered(), () => {
      const discovered = find(scope, incoming);
      if (discovered !== undefined) forward(scope, incoming, discovered, services);
      else rejectUnknown(scope, incoming, services);
    });
}

/** If a server that never connected may have the target, the error says so. */
function rejectUnknown(scope: Scope, incoming: Incoming, services: CallServices): void {
  authorizeSome(scope, incoming, services);
  authorizeHidden(scope, incoming, services);
  const error = scope.explainUnknown(incoming.message);
  if (error.code === 'server_unavailable') scope.callMissed(error);
  reject(incoming, error);
}

function find(scope: Scope, { caller, message }: Incoming): Target | undefined {
  return resolve(scope.catalog, message) ?? resolveFormer(scope, caller.listedAt, message);
}

function forward(scope: Scope, incoming: Incoming, target: Target, services: CallServices): void {
  const { caller, message, prefer, headers } = incoming;
  const { route, kind, edits } = target;
  const group = scope.group(route.group);
  if (group === undefined) {
    reject(incoming, scope.explainUnknown(message));
    return;
  }
  authorize(scope, incoming, target, group, services);
  if (headers !== undefined) checkParameters(headers, message, group, route.own);
  const round =
    message.requestState === undefined ? firstRound : laterRound(scope, incoming, group, services);
  if (round === undefined) return;
  const { labels, timeoutMs, run } = readCallOptions(message, prefer);
  deliver(
    incoming,
    services,
    { group, qualifier: route.qualifier, catalog: scope.catalog, project: scope.project?.id, run },
    {
      client: caller.identity,
      kind,
      own: route.own,
      server: route.server,
      among: route.among,
      labels,
      only: round.only,
      message,
      edits: round.edits.length === 0 ? edits : [...edits, ...round.edits],
      description: caller.facts,
      sender: caller.sender,
      // A task that begins twice does its work twice, whatever the tool's annotations say.
      isRepeatable: route.isRepeatable && message.task === undefined,
      timeoutMs,
    },
  );
}

function toolOf({ message, own }: RoutedRequest): string | undefined {
  return message.method === 'tools/call' ? own : undefined;
}

export function deliver(
  incoming: Incoming,
  services: CallServices,
  context: CallContext,
  request: RoutedRequest,
): void {
  const { group } = context;
  const ticket = services.limiter.beginCall(incoming.caller.principal, group, toolOf(request));
  const clientCall = new ClientCall(incoming, services, context, request, ticket);
  if (incoming.caller.begin(clientCall)) clientCall.deliver(new Delivery(group, request, clientCall));
  else {
    ticket?.release();
    rejectDuplicate(incoming);
  }
}

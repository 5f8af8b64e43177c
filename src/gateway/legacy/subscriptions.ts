import { SwitchboardError } from '../../errors.ts';
import { emptyResult, resultMessage } from '../../protocol/jsonrpc.ts';
import { idBytes } from '../../protocol/message.ts';
import { type Authorizer, authorizeResource } from '../authorize.ts';
import { readCallOptions } from '../call-options.ts';
import type { Incoming } from '../caller.ts';
import { required } from '../resolve.ts';
import { after, defer, reject } from '../respond.ts';
import type { Scope, Scopes } from '../scope.ts';
import { begin, chooseReplica, end, mayFollow } from '../subscriptions.ts';
import type { Session } from './caller.ts';

/** Subscriptions are kept as long as the session. */
const MAX_SUBSCRIPTIONS = 1_000;
const LONGEST_URI = 8 * 1024;

/** A server sees one subscription for all of its clients. */
export function changeSubscription(
  scope: Scope,
  incoming: Incoming<Session>,
  services: Authorizer,
  changed: () => void,
): void {
  required(incoming.message.uri, 'uri');
  after(incoming, scope.discovered(), () => changeKnown(scope, incoming, services, changed));
}

function changeKnown(
  scope: Scope,
  incoming: Incoming<Session>,
  services: Authorizer,
  changed: () => void,
): void {
  const { caller: session, message, responder, prefer } = incoming;
  const uri = message.uri!.value;
  const key = keyOf(scope, session, uri);
  const begins = message.method === 'resources/subscribe';
  if (begins) {
    checkLimits(session, key, uri);
    authorizeResource(scope, incoming, uri, services);
  }
  const subscription =
    session.subscriptions.get(key) ??
    (begins ? chooseReplica(scope, session, uri, readCallOptions(message, prefer).labels) : undefined);
  if (subscription === undefined && (begins || scope.catalog.resource(uri) === undefined)) {
    reject(incoming, scope.explainUnknown(message));
    return;
  }
  const change = async () => {
    if (subscription !== undefined) await (begins ? begin : end)(session, key, subscription);
  };
  defer(incoming, change, () => {
    changed();
    responder.respond(resultMessage(idBytes(message), emptyResult));
  });
}

function checkLimits({ subscriptions }: Session, key: string, uri: string): void {
  if (uri.length > LONGEST_URI)
    throw new SwitchboardError('invalid_params', `params.uri is longer than ${LONGEST_URI} characters.`);
  if (subscriptions.size >= MAX_SUBSCRIPTIONS && !subscriptions.has(key)) {
    const why = `A session can subscribe to at most ${MAX_SUBSCRIPTIONS} resources: unsubscribe from some.`;
    throw new SwitchboardError('invalid_params', why);
  }
}

/** The same URI may name two resources in two projects. */
function keyOf(scope: Scope, session: Session, uri: string): string {
  return scope === session.scope ? uri : `${scope.project?.id}\n${uri}`;
}

/** Ends the subscriptions that the principal of a session may no longer have. */
export function dropForbidden(session: Session): void {
  for (const [key, subscription] of [...session.subscriptions])
    if (!mayFollow(session, subscription, subscription.own)) end(session, key, subscription).catch(() => {});
}

/** Skips resources that do not exist once all servers are discovered. */
export function resubscribe(scopes: Scopes, session: Session, keys: readonly string[]): void {
  for (const key of keys) {
    const separator = key.indexOf('\n');
    const scope = separator === -1 ? session.scope : scopes.of(key.slice(0, separator));
    if (scope === undefined) continue;
    const restore = async () => {
      await scope.discovered();
      if (session.isClosed) return;
      const subscription = chooseReplica(scope, session, key.slice(separator + 1), undefined);
      if (subscription === undefined) return;
      await begin(session, key, subscription);
      dropForbidden(session);
    };
    restore().catch(() => {});
  }
}

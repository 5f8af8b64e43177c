import type { ListName } from '../catalog/contribution.ts';
import type { Listing } from '../catalog/listing.ts';
import { SwitchboardError } from '../errors.ts';
import { asObject } from '../json.ts';
import { parseBounded } from '../protocol/bounded-parse.ts';
import { INSTANCES_KEY } from '../protocol/instances.ts';
import { resultMessage } from '../protocol/jsonrpc.ts';
import { bytesAt, idBytes, type Message } from '../protocol/message.ts';
import type { Incoming } from './caller.ts';
import { instancesMeta } from './greeting.ts';
import { after, reject } from './respond.ts';
import type { Scope } from './scope.ts';

const listOfMethod: Record<string, ListName> = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'templates',
  'prompts/list': 'prompts',
};

export const changedNotifications: Record<ListName, string> = {
  tools: 'notifications/tools/list_changed',
  resources: 'notifications/resources/list_changed',
  templates: 'notifications/resources/list_changed',
  prompts: 'notifications/prompts/list_changed',
};

export function isList(method: string): boolean {
  return Object.hasOwn(listOfMethod, method);
}

/** Waits, briefly, only for servers that never connected. */
export function list(scope: Scope, incoming: Incoming, instance: string): void {
  const wanted = readParams(incoming.message);
  after(incoming, scope.listable(), () => {
    const listing = scope.catalog.lists[listOfMethod[incoming.message.method]!];
    after(incoming, listing.prepare(wanted.cursor), () =>
      respondFrom(listing, scope, incoming, wanted, instance),
    );
  });
}

function respondFrom(
  listing: Listing,
  scope: Scope,
  incoming: Incoming,
  { cursor, wantsInstances }: ListParams,
  instance: string,
): void {
  const { caller, message, responder } = incoming;
  const name = listOfMethod[message.method]!;
  if (name === 'tools' || name === 'prompts') {
    scope.show();
    caller.listed();
  }
  const page = listing.page(cursor);
  if (page === undefined) {
    reject(incoming, new SwitchboardError('invalid_params', 'params.cursor is not a cursor of this list.'));
    return;
  }
  const id = idBytes(message);
  const isChosen = incoming.projects !== undefined || message.projectId !== undefined;
  const first: string[] = [];
  if (caller.era === 'modern') first.push(cacheable(scope, name, isChosen));
  if (wantsInstances) first.push(`"_meta":${JSON.stringify(instancesMeta(scope, instance))}`);
  if (first.length === 0) responder.respond(resultMessage(id, page));
  else responder.respond(resultMessage(id, Buffer.from(`{${first.join(',')},`), page.subarray(1)));
}

/** The members that begin a page in the modern era: cache lifetime and scope. */
function cacheable(scope: Scope, name: ListName, isChosen: boolean): string {
  const { ttlMs, isPublic } = scope.freshness(name);
  // The list depends on a header, which caches ignore.
  const cacheScope = isPublic && !isChosen ? 'public' : 'private';
  return `"resultType":"complete","ttlMs":${ttlMs},"cacheScope":"${cacheScope}"`;
}

interface ListParams {
  cursor: string | undefined;
  /** Whether another Switchboard wants the ids of all on the path. */
  wantsInstances: boolean;
}

const firstPage: ListParams = { cursor: undefined, wantsInstances: false };

function readParams({ bytes, params }: Message): ListParams {
  // `{}` is the common case, and needs no parser.
  if (params === undefined || params.end - params.start === 2) return firstPage;
  const { cursor, _meta: meta } = asObject(parseBounded(bytesAt(bytes, params).toString()));
  if (cursor !== undefined && typeof cursor !== 'string')
    throw new SwitchboardError('invalid_params', 'params.cursor must be a string.');
  return { cursor, wantsInstances: asObject(meta)[INSTANCES_KEY] !== undefined };
}

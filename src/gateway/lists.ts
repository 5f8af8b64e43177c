import type { ListName } from '../catalog/contribution.ts';
import type { Listing } from '../catalog/listing.ts';
import { SwitchboardError } from '../errors.ts';
import { parseBounded } from '../protocol/bounded-parse.ts';
import { bytesAt, idBytes, type Message } from '../protocol/envelope.ts';
import { INSTANCES_KEY } from '../protocol/instances.ts';
import { resultMessage } from '../protocol/jsonrpc.ts';
import { asObject } from '../protocol/objects.ts';
import type { Incoming } from './caller.ts';
import { hold } from './hold.ts';
import { instancesMeta } from './instances.ts';
import { refuse } from './refuse.ts';
import type { Scope } from './scope.ts';

const listOfMethod: Record<string, ListName> = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'templates',
  'prompts/list': 'prompts',
};

/** Answers a list request from the bytes of the snapshot. Only servers never seen are waited for, and not for long. */
export function list(scope: Scope, incoming: Incoming, instance: string): void {
  const wanted = wantedOf(incoming.message);
  const discovered = scope.listable();
  const goOn = () => answer(scope, incoming, wanted, instance);
  if (discovered === undefined) goOn();
  else hold(incoming, () => discovered, goOn);
}

function answer(scope: Scope, incoming: Incoming, wanted: Wanted, instance: string): void {
  const listing = scope.catalog.lists[listOfMethod[incoming.message.method]!];
  const goOn = () => answerFrom(listing, scope, incoming, wanted, instance);
  const prepared = listing.prepare(wanted.cursor);
  if (prepared === undefined) goOn();
  else hold(incoming, () => prepared, goOn);
}

function answerFrom(
  listing: Listing,
  scope: Scope,
  incoming: Incoming,
  { cursor, asksInstances }: Wanted,
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
    refuse(
      incoming,
      new SwitchboardError('invalid_params', 'params.cursor is not one that this list gave out.'),
    );
    return;
  }
  const id = idBytes(message);
  const isChosen = incoming.projects !== undefined || message.projectId !== undefined;
  const first: string[] = [];
  if (caller.era === 'modern') first.push(cacheable(scope, name, isChosen));
  if (asksInstances) first.push(`"_meta":${JSON.stringify(instancesMeta(scope, instance))}`);
  if (first.length === 0) responder.respond(resultMessage(id, page));
  else responder.respond(resultMessage(id, Buffer.from(`{${first.join(',')},`), page.subarray(1)));
}

/** How a page of a list begins in the modern era: with how long it holds, and for whom. */
function cacheable(scope: Scope, name: ListName, isChosen: boolean): string {
  const { ttlMs, isPublic } = scope.freshness(name);
  // What is listed may depend on a header, which no cache looks at.
  const cacheScope = isPublic && !isChosen ? 'public' : 'private';
  return `"resultType":"complete","ttlMs":${ttlMs},"cacheScope":"${cacheScope}"`;
}

interface Wanted {
  cursor: string | undefined;
  /** Whether a Switchboard wants to know which others are on the way. */
  asksInstances: boolean;
}

const firstPage: Wanted = { cursor: undefined, asksInstances: false };

function wantedOf({ bytes, params }: Message): Wanted {
  // `{}` is the common case and needs no parser.
  if (params === undefined || params.end - params.start === 2) return firstPage;
  const { cursor, _meta: meta } = asObject(parseBounded(bytesAt(bytes, params).toString()));
  if (cursor !== undefined && typeof cursor !== 'string')
    throw new SwitchboardError('invalid_params', 'params.cursor must be a string.');
  return { cursor, asksInstances: asObject(meta)[INSTANCES_KEY] !== undefined };
}

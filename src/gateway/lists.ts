import type { ListName } from '../catalog/catalog.ts';
import { SwitchboardError } from '../errors.ts';
import { bytesAt, idBytes, type Message } from '../protocol/envelope.ts';
import { resultMessage } from '../protocol/jsonrpc.ts';
import type { Incoming } from './caller.ts';
import { hold } from './hold.ts';
import { refuse } from './refuse.ts';
import type { Scope } from './scope.ts';

const listOfMethod: Record<string, ListName> = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'templates',
  'prompts/list': 'prompts',
};

/** Answers a list request from the bytes of the snapshot. Only servers never seen are waited for, and not for long. */
export function list(scope: Scope, incoming: Incoming): void {
  const cursor = cursorOf(incoming.message);
  const discovered = scope.listable();
  if (discovered === undefined) answer(scope, incoming, cursor);
  else hold(incoming, discovered, () => answer(scope, incoming, cursor));
}

function answer(scope: Scope, incoming: Incoming, cursor: string | undefined): void {
  const { caller, message, outlet } = incoming;
  const name = listOfMethod[message.method]!;
  const page = scope.catalog.lists[name].page(cursor);
  if (page === undefined) {
    refuse(
      incoming,
      new SwitchboardError('invalid_params', 'params.cursor is not one that this list gave out.'),
    );
    return;
  }
  const id = idBytes(message);
  const isChosen = incoming.projects !== undefined || message.projectId !== undefined;
  if (caller.era === 'legacy') outlet.answer(resultMessage(id, page));
  else outlet.answer(resultMessage(id, cacheable(scope, name, isChosen), page.subarray(1)));
}

/** How a page of a list begins in the modern era: with how long it holds, and for whom. */
function cacheable(scope: Scope, name: ListName, isChosen: boolean): Buffer {
  const { ttlMs, isPublic } = scope.freshness(name);
  // What is listed may depend on a header, which no cache looks at.
  const cacheScope = isPublic && !isChosen ? 'public' : 'private';
  return Buffer.from(`{"resultType":"complete","ttlMs":${ttlMs},"cacheScope":"${cacheScope}",`);
}

function cursorOf({ bytes, params }: Message): string | undefined {
  // `{}` is the common case and needs no parser.
  if (params === undefined || params.end - params.start === 2) return undefined;
  const { cursor } = JSON.parse(bytesAt(bytes, params).toString()) as { cursor?: unknown };
  if (cursor === undefined) return undefined;
  if (typeof cursor !== 'string')
    throw new SwitchboardError('invalid_params', 'params.cursor must be a string.');
  return cursor;
}

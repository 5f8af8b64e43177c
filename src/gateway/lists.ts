import type { ListName } from '../catalog/catalog.ts';
import { SwitchboardError } from '../errors.ts';
import { bytesAt, idBytes, type Message } from '../protocol/envelope.ts';
import { resultMessage } from '../protocol/jsonrpc.ts';
import { hold } from './hold.ts';
import { refuse } from './refuse.ts';
import type { Scope } from './scope.ts';
import type { Incoming } from './session.ts';

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
  const { message, outlet } = incoming;
  const page = scope.catalog.lists[listOfMethod[message.method]!].page(cursor);
  if (page === undefined) {
    refuse(
      incoming,
      new SwitchboardError('invalid_params', 'params.cursor is not one that this list gave out.'),
    );
    return;
  }
  outlet.answer(resultMessage(idBytes(message), page));
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

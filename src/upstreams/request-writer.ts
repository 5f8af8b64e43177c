import { type Chunks, requestMessage } from '../protocol/jsonrpc.ts';
import { asObject } from '../protocol/objects.ts';
import { describe, isDescribed, undescribe } from '../protocol/self-description.ts';
import { type Edit, spliceChunks } from '../protocol/splice.ts';
import type { Era } from '../protocol/versions.ts';
import type { ClientRequest } from './request.ts';

/** A client's request as a server of this era is sent it. `nobody`: what one is told of a client that we do not know. */
export function relayedRequest(
  { message, edits, sender }: ClientRequest,
  id: number,
  era: Era,
  nobody: Buffer,
): Chunks {
  const idBytes = Buffer.from(String(id), 'latin1');
  const all: Edit[] = [{ ...message.idSpan!, bytes: idBytes }, ...edits];
  if (message.wantedProgress !== undefined) all.push({ ...message.wantedProgress, bytes: idBytes });
  if (era === 'modern') {
    if (!isDescribed(message)) all.push(describe(message, sender?.() ?? nobody));
  } else if (message.claims !== undefined) {
    all.push(...undescribe(message));
  }
  return spliceChunks(message.bytes, all);
}

/** A request of our own. `meta`: what a server of the modern era is told of us with each. */
export function ownRequest(id: number, method: string, params: unknown, era: Era, meta: object): Buffer {
  if (era === 'legacy') return requestMessage(id, method, params);
  const { _meta: given, ...rest } = asObject(params);
  return requestMessage(id, method, { ...rest, _meta: { ...asObject(given), ...meta } });
}

import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import { parseBounded } from '../../protocol/bounded-parse.ts';
import { bytesAt, idBytes, idValue, type Message } from '../../protocol/envelope.ts';
import { errorMessage, METHOD_NOT_FOUND, notificationMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import { type Edit, splice } from '../../protocol/splice.ts';
import type { Server } from '../../upstreams/server.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import type { InFlight } from '../caller.ts';
import { askedByName, lackedCapability } from '../capabilities.ts';
import type { Ask, Session } from './caller.ts';

/** The one client that a server's message can be meant for, and the request that it belongs to, if any. */
export interface Addressee {
  session: Session;
  call: InFlight | undefined;
}

/** Whether a client that can do so much may be asked this; a server that asks for more is told no. */
export function mayAsk(message: Message, upstream: Upstream, capabilities: Record<string, unknown>): boolean {
  const lacked = lackedCapability(capabilities, message.method, paramsOf(message));
  if (lacked === undefined) return true;
  const text = askedByName(message.method)
    ? `The client does not support ${lacked}.`
    : `Unknown method: ${message.method}`;
  upstream.answerError(idBytes(message), { code: METHOD_NOT_FOUND, message: text });
  return false;
}

/** A question that nobody can be asked. */
export function declineUnclear(message: Message, upstream: Upstream, { name, config }: Server): void {
  // One that is hosted is one for all clients.
  const canHaveOne = config.transport.type !== 'hosted';
  const why =
    message.method === 'roots/list'
      ? sharedRoots(canHaveOne)
      : `Server "${name}" asked ${message.method}, and it cannot be told for which client.${canHaveOne ? ' Set "isolation": "session" for it.' : ''}`;
  decline(upstream, idBytes(message), new SwitchboardError('client_unavailable', why));
}

/** Many servers ask for roots as soon as they run, and log the answer: it must not look like a fault. */
function sharedRoots(canHaveOne: boolean): string {
  const advice = canHaveOne
    ? '; with "isolation": "session" each client has its own process and its roots'
    : '';
  return `There are no roots, because all clients share this server (this is normal${advice}).`;
}

/** A server asks the client: passed on under an id of ours, or declined with the reason. */
export function ask(message: Message, upstream: Upstream, { session, call }: Addressee): void {
  if (!mayAsk(message, upstream, session.facts.capabilities)) return;
  // A few bytes of a large read would keep all of it.
  const serverId = Buffer.from(idBytes(message));
  try {
    session.checkRoomFor(upstream);
  } catch (error) {
    decline(upstream, serverId, asSwitchboardError(error));
    return;
  }
  const wanted = message.wantedProgress;
  const progressToken = wanted && Buffer.from(bytesAt(message.bytes, wanted));
  const place = call?.responder ?? { event: (question) => session.stream.send(question) };
  const id = Buffer.from(
    String(
      session.ask({
        place,
        call,
        source: { upstream, serverId, progressToken },
        answered: ({ bytes, idSpan }) => upstream.send(splice(bytes, [{ ...idSpan!, bytes: serverId }])),
        declined: () => decline(upstream, serverId, clientGone()),
      }),
    ),
  );
  const edits: Edit[] = [{ ...message.idSpan!, bytes: id }];
  if (wanted !== undefined) edits.push({ ...wanted, bytes: id });
  place.event([splice(message.bytes, edits)]);
}

/** The client answers what a server asked. */
export function answerAsk(session: Session, message: Message): void {
  session.takeAsk(message.id)?.answered(message);
}

/** The client reports progress on what a server asked. */
export function progressOfAsk(session: Session, message: Message): void {
  if (message.progressToken === undefined) return;
  const { source } = session.peekAsk(idValue(message.bytes, message.progressToken)) ?? {};
  if (source?.progressToken === undefined) return;
  source.upstream.send(splice(message.bytes, [{ ...message.progressToken, bytes: source.progressToken }]));
}

/** The server takes its question back. */
export function cancelAsk(upstream: Upstream, message: Message, sessions: Iterable<Session>): void {
  if (message.requestId === undefined) return;
  const serverId = bytesAt(message.bytes, message.requestId);
  for (const session of sessions) {
    for (const [id, asked] of session.asksOf(upstream)) {
      if (!asked.source?.serverId.equals(serverId)) continue;
      session.takeAsk(id);
      asked.place.event([splice(message.bytes, [{ ...message.requestId, bytes: Buffer.from(String(id)) }])]);
    }
  }
}

/** The server is gone, and with it everybody who wanted an answer. */
export function withdrawAsks(upstream: Upstream, sessions: Iterable<Session>): void {
  for (const session of sessions) {
    for (const [id] of session.asksOf(upstream)) withdrawAsk(session, id, 'The server that asked is gone.');
  }
}

/** The client need not answer this any more. */
export function withdrawAsk(session: Session, id: number, reason: string): void {
  const asked = session.takeAsk(id);
  asked?.place.event([notificationMessage('notifications/cancelled', { requestId: id, reason })]);
}

/** The client went away without answering. */
export function declineAsks(asks: Ask[]): void {
  for (const asked of asks) asked.declined();
}

export function decline(upstream: Upstream, serverId: Buffer, error: SwitchboardError): void {
  upstream.send(errorMessage(serverId, toRpcError(error)));
}

export function clientGone(): SwitchboardError {
  return new SwitchboardError('client_unavailable', 'The client went away before it answered.');
}

function paramsOf({ bytes, params }: Message): unknown {
  return params && parseBounded(bytesAt(bytes, params).toString());
}

import { SwitchboardError } from '../errors.ts';
import { bytesAt, idBytes, idValue, type Message } from '../protocol/envelope.ts';
import { errorMessage, notificationMessage, toRpcError } from '../protocol/jsonrpc.ts';
import { type Edit, splice } from '../protocol/splice.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import type { Ask, Outlet, Session } from './session.ts';

/** The one client that a server's message can be meant for, and the request that it belongs to, if any. */
export interface Addressee {
  session: Session;
  outlet: Outlet | undefined;
}

/** What a client must have declared before it can be asked. */
const neededCapability: Record<string, string> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
};

const METHOD_NOT_FOUND = -32601;

/** A server asks the client: passed on under an id of ours, or declined with the reason. */
export function ask(
  message: Message,
  upstream: Upstream,
  server: string,
  addressee: Addressee | undefined,
): void {
  const serverId = idBytes(message);
  const capability = neededCapability[message.method];
  if (capability === undefined) {
    upstream.answerError(serverId, { code: METHOD_NOT_FOUND, message: `Unknown method: ${message.method}` });
    return;
  }
  if (addressee === undefined) {
    const why = `Server "${server}" asked ${message.method}, and it cannot be told for which client. Set "isolation": "session" for it.`;
    upstream.answerError(serverId, toRpcError(new SwitchboardError('client_unavailable', why)));
    return;
  }
  const { session, outlet } = addressee;
  if (session.facts.capabilities[capability] === undefined) {
    upstream.answerError(serverId, {
      code: METHOD_NOT_FOUND,
      message: `The client does not support ${capability}.`,
    });
    return;
  }
  const wanted = message.wantedProgress;
  const progressToken = wanted && bytesAt(message.bytes, wanted);
  const place = outlet ?? { event: (question) => session.stream.send(question) };
  const id = Buffer.from(String(session.ask({ upstream, serverId, progressToken, place })));
  const edits: Edit[] = [{ ...message.idSpan!, bytes: id }];
  if (wanted !== undefined) edits.push({ ...wanted, bytes: id });
  place.event([splice(message.bytes, edits)]);
}

/** The client answers what a server asked. */
export function answerAsk(session: Session, message: Message): void {
  const asked = session.takeAsk(message.id);
  asked?.upstream.send(splice(message.bytes, [{ ...message.idSpan!, bytes: asked.serverId }]));
}

/** The client reports progress on what a server asked. */
export function progressOfAsk(session: Session, message: Message): void {
  if (message.progressToken === undefined) return;
  const asked = session.peekAsk(idValue(message.bytes, message.progressToken));
  if (asked?.progressToken === undefined) return;
  asked.upstream.send(splice(message.bytes, [{ ...message.progressToken, bytes: asked.progressToken }]));
}

/** The server takes its question back. */
export function cancelAsk(upstream: Upstream, message: Message, sessions: Iterable<Session>): void {
  if (message.requestId === undefined) return;
  const serverId = bytesAt(message.bytes, message.requestId);
  for (const session of sessions) {
    for (const [id, asked] of session.asksOf(upstream)) {
      if (!asked.serverId.equals(serverId)) continue;
      session.takeAsk(id);
      asked.place.event([splice(message.bytes, [{ ...message.requestId, bytes: Buffer.from(String(id)) }])]);
    }
  }
}

/** The server is gone, and with it everybody who wanted an answer. */
export function withdrawAsks(upstream: Upstream, sessions: Iterable<Session>): void {
  for (const session of sessions) {
    for (const [id, asked] of session.asksOf(upstream)) {
      session.takeAsk(id);
      const reason = 'The server that asked is gone.';
      asked.place.event([notificationMessage('notifications/cancelled', { requestId: id, reason })]);
    }
  }
}

/** The client went away without answering. */
export function declineAsks(asks: Ask[]): void {
  for (const { upstream, serverId } of asks) {
    const gone = new SwitchboardError('client_unavailable', 'The client went away before it answered.');
    upstream.send(errorMessage(serverId, toRpcError(gone)));
  }
}

export const rootsChanged = notificationMessage('notifications/roots/list_changed');

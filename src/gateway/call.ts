import type { Route } from '../catalog/catalog.ts';
import { uriPrefix } from '../catalog/uris.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { type AnswerId, withAnswerId } from '../protocol/answer.ts';
import { bytesAt, type Message, readMessage } from '../protocol/envelope.ts';
import { type Chunks, errorMessage, join, type RequestId, toRpcError } from '../protocol/jsonrpc.ts';
import { mayHoldUris, resultUriSpans } from '../protocol/result-uris.ts';
import { type Edit, splice } from '../protocol/splice.ts';
import type { Call, Upstream } from '../upstreams/upstream.ts';
import { hold } from './hold.ts';
import { refuse, refuseSecondUse } from './refuse.ts';
import { resolve, unknownTarget } from './resolve.ts';
import type { Scope } from './scope.ts';
import type { Incoming, InFlight, Outlet, Session } from './session.ts';

/** One client request on its way through one server: resolve, pick the connection, forward, map the answer back. */
export function call(scope: Scope, incoming: Incoming): void {
  const target = resolve(scope.catalog, incoming.message);
  if (target !== undefined) forward(scope, incoming, target.route, target.edits);
  else callOnceDiscovered(scope, incoming);
}

/** The first call may come before anybody has asked for a list. */
function callOnceDiscovered(scope: Scope, incoming: Incoming): void {
  const forwardOrRefuse = () => {
    const target = resolve(scope.catalog, incoming.message);
    if (target !== undefined) forward(scope, incoming, target.route, target.edits);
    else refuse(incoming, unknownTarget(incoming.message));
  };
  const discovered = scope.discovered();
  if (discovered === undefined) forwardOrRefuse();
  else hold(incoming, discovered, forwardOrRefuse);
}

function forward(scope: Scope, incoming: Incoming, route: Route, edits: Edit[]): void {
  const { session } = incoming;
  const server = scope.servers.get(route.server);
  if (server === undefined) {
    refuse(incoming, unknownTarget(incoming.message));
    return;
  }
  const clientCall = new ClientCall(incoming, route.server);
  if (!session.begin(clientCall)) {
    refuseSecondUse(incoming);
    return;
  }
  const connection = server.connectionFor(session, session.facts.capabilities);
  const live = connection.current;
  if (live !== undefined) {
    clientCall.send(live.upstream, edits);
  } else {
    connection.open().then(
      ({ upstream }) => clientCall.send(upstream, edits),
      (error: unknown) => clientCall.failed(asSwitchboardError(error)),
    );
  }
}

export class ClientCall implements Call, InFlight {
  readonly client: Session;
  readonly server: string;
  readonly outlet: Outlet;
  private readonly message: Message;
  private upstream: Upstream | undefined;
  private upstreamId = -1;
  private over = false;

  constructor({ session, message, outlet }: Incoming, server: string) {
    this.client = session;
    this.message = message;
    this.outlet = outlet;
    this.server = server;
  }

  get id(): RequestId {
    return this.message.id!;
  }

  send(upstream: Upstream, edits: Edit[]): void {
    if (this.over) return;
    this.upstream = upstream;
    this.upstreamId = upstream.relay(this.message, edits, this);
  }

  cancel(reason: string | undefined): void {
    if (!this.finish()) return;
    this.upstream?.cancel(this.upstreamId, reason);
    this.outlet.end();
  }

  answered(chunks: Chunks, at: AnswerId): void {
    if (!this.finish()) return;
    try {
      this.outlet.answer(this.mapped(chunks, at));
    } catch (error) {
      const { message } = asSwitchboardError(error);
      this.tell(
        new SwitchboardError('server_protocol_error', `Server "${this.server}" answered wrongly: ${message}`),
      );
    }
  }

  failed(error: SwitchboardError): void {
    if (!this.finish()) return;
    const named = error.data.server === this.server;
    this.tell(
      named
        ? error
        : new SwitchboardError(error.code, `Server "${this.server}": ${error.message}`, {
            cause: error,
            data: { ...error.data, server: this.server },
          }),
    );
  }

  progressed(message: Message): void {
    if (this.over || this.message.wantedProgress === undefined) return;
    const token = bytesAt(this.message.bytes, this.message.wantedProgress);
    this.outlet.event([splice(message.bytes, [{ ...message.progressToken!, bytes: token }])]);
  }

  paused(retryMs: number): void {
    if (!this.over) this.outlet.pause(retryMs);
  }

  private get idBytes(): Buffer {
    return bytesAt(this.message.bytes, this.message.idSpan!);
  }

  private finish(): boolean {
    if (this.over) return false;
    this.over = true;
    return this.client.finish(this);
  }

  private tell(error: SwitchboardError): void {
    this.outlet.answer([errorMessage(this.idBytes, toRpcError(error))]);
  }

  /** The answer under the client's id, with the server's URIs made public. */
  private mapped(answered: Chunks, found: AnswerId): Buffer[] {
    const isCertain = !this.outlet.isBatch && !this.client.awaitsOthersThan(this.server);
    const { chunks, at } = isCertain ? { chunks: answered, at: found } : verified(answered, found);
    const { method } = this.message;
    if (at.isError || !mayHoldUris(method, chunks)) return withAnswerId(chunks, at, this.idBytes);
    const answer = join(withAnswerId(chunks, at, this.idBytes));
    const prefix = Buffer.from(uriPrefix(this.server));
    const edits = resultUriSpans(method, answer).map(({ start }) => ({
      start: start + 1,
      end: start + 1,
      bytes: prefix,
    }));
    return edits.length === 0 ? [answer] : [splice(answer, edits)];
  }
}

/**
 * A client that awaits several servers could be made to take one server's answer for another's by an answer with
 * two ids, and a batch by two answers in one. Then, and only then, answers are read whole, and left one reading.
 */
function verified(chunks: Chunks, at: AnswerId): { chunks: Chunks; at: AnswerId } {
  const { bytes, id, idSpan } = readMessage(join(chunks));
  if (id !== at.id) throw new SwitchboardError('server_protocol_error', 'the answer has two ids');
  return { chunks: [bytes], at: { id: at.id, isError: at.isError, chunk: 0, ...idSpan! } };
}

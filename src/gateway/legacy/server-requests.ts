import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import { parseBounded } from '../../protocol/bounded-parse.ts';
import {
  type Chunks,
  errorMessage,
  METHOD_NOT_FOUND,
  notificationMessage,
  type RequestId,
  toRpcError,
} from '../../protocol/jsonrpc.ts';
import { bytesAt, idBytes, idValue, type Message } from '../../protocol/message.ts';
import { type Edit, splice } from '../../protocol/splice.ts';
import type { Server } from '../../upstreams/server.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import { isServerRequest, missingCapability } from '../crossing/input.ts';
import type { InFlight, Responder } from '../responder.ts';

/** A server's request to a client that has no response yet. */
interface ServerRequest {
  /** The stream of the related client request, or the standing one. */
  readonly destination: Pick<Responder, 'event'>;
  /** The legacy server that waits for the response, with its own id and progress token. */
  readonly source: { upstream: Upstream; serverId: Buffer; progressToken: Buffer | undefined } | undefined;
  /** The related client request, if known. */
  readonly call: InFlight | undefined;
  onResponse(message: Message): void;
  onDisconnect(): void;
}

/** A working client never has more of them pending. */
const MAX_PENDING_OF_SERVER = 100;
const MAX_PENDING = 200;

/** The pending requests of servers to one legacy client. */
export class ServerRequests {
  readonly capabilities: Record<string, unknown>;
  private readonly stream: { send(message: Chunks): void };
  private pending: Map<number, ServerRequest> | undefined;
  /** When each upstream last got a response, or withdrew a request. */
  private settledAt: WeakMap<Upstream, number> | undefined;
  private nextId = 1;

  constructor(capabilities: Record<string, unknown>, stream: { send(message: Chunks): void }) {
    this.capabilities = capabilities;
    this.stream = stream;
  }

  isPendingFor(call: InFlight): boolean {
    for (const request of this.pending?.values() ?? []) if (request.call === call) return true;
    return false;
  }

  /** `now` while the upstream waits for the client, 0 if it never did. */
  waitedUntil(upstream: Upstream, now: number): number {
    return this.of(upstream).length > 0 ? now : (this.settledAt?.get(upstream) ?? 0);
  }

  /** Throws if `count` more requests would exceed the limit of the server, or of all. */
  checkRoom(upstream: Upstream | undefined, count = 1): void {
    const isTooMany =
      (this.pending?.size ?? 0) + count > MAX_PENDING ||
      (upstream !== undefined && this.of(upstream).length >= MAX_PENDING_OF_SERVER);
    if (isTooMany) throw tooManyPending();
  }

  /** Returns the id to send the request under. */
  register(request: ServerRequest): number {
    const id = this.nextId++;
    this.pending ??= new Map();
    this.pending.set(id, request);
    return id;
  }

  forward(message: Message, upstream: Upstream, call: InFlight | undefined): void {
    if (!checkSupported(message, upstream, this.capabilities)) return;
    // A copy: a few bytes of a large read would keep all of it in memory.
    const serverId = Buffer.from(idBytes(message));
    try {
      this.checkRoom(upstream);
    } catch (error) {
      decline(upstream, serverId, asSwitchboardError(error));
      return;
    }
    const wanted = message.wantedProgress;
    const progressToken = wanted && Buffer.from(bytesAt(message.bytes, wanted));
    const destination = call?.responder ?? { event: (request) => this.stream.send(request) };
    const id = this.register({
      destination,
      call,
      source: { upstream, serverId, progressToken },
      onResponse: ({ bytes, idSpan }) => upstream.send(splice(bytes, [{ ...idSpan!, bytes: serverId }])),
      onDisconnect: () => decline(upstream, serverId, clientGone()),
    });
    const ourId = Buffer.from(String(id));
    const edits: Edit[] = [{ ...message.idSpan!, bytes: ourId }];
    if (wanted !== undefined) edits.push({ ...wanted, bytes: ourId });
    destination.event([splice(message.bytes, edits)]);
  }

  respond(message: Message): void {
    this.take(message.id)?.onResponse(message);
  }

  progress({ bytes, progressToken }: Message): void {
    const { source } = (progressToken && this.find(idValue(bytes, progressToken))) ?? {};
    if (source?.progressToken === undefined) return;
    source.upstream.send(splice(bytes, [{ ...progressToken!, bytes: source.progressToken }]));
  }

  cancel(upstream: Upstream, { bytes, requestId }: Message): void {
    if (requestId === undefined) return;
    const serverId = bytesAt(bytes, requestId);
    for (const [id, { source, destination }] of this.of(upstream)) {
      if (!source?.serverId.equals(serverId)) continue;
      this.take(id);
      destination.event([splice(bytes, [{ ...requestId, bytes: Buffer.from(String(id)) }])]);
    }
  }

  /** The server no longer needs the response. */
  withdraw(id: number, reason: string): void {
    const request = this.take(id);
    request?.destination.event([notificationMessage('notifications/cancelled', { requestId: id, reason })]);
  }

  withdrawAll(upstream: Upstream): void {
    for (const [id] of this.of(upstream)) this.withdraw(id, 'The server that sent the request has gone.');
  }

  close(): void {
    const left = [...(this.pending?.values() ?? [])];
    this.pending = undefined;
    for (const request of left) request.onDisconnect();
  }

  private find(id: RequestId | undefined): ServerRequest | undefined {
    return typeof id === 'number' ? this.pending?.get(id) : undefined;
  }

  private take(id: RequestId | undefined): ServerRequest | undefined {
    const request = this.find(id);
    if (request === undefined) return undefined;
    this.pending?.delete(id as number);
    if (request.source !== undefined) {
      this.settledAt ??= new WeakMap();
      this.settledAt.set(request.source.upstream, performance.now());
    }
    return request;
  }

  private of(upstream: Upstream): [number, ServerRequest][] {
    return [...(this.pending ?? [])].filter(([, { source }]) => source?.upstream === upstream);
  }
}

/** If the client does not support the request, the server gets an error. */
export function checkSupported(
  { bytes, method, params, idSpan }: Message,
  upstream: Upstream,
  capabilities: Record<string, unknown>,
): boolean {
  const parsed = params && parseBounded(bytesAt(bytes, params).toString());
  const missing = missingCapability(capabilities, method, parsed);
  if (missing === undefined) return true;
  const message = isServerRequest(method)
    ? `The client does not support ${missing}.`
    : `Unknown method: ${method}`;
  upstream.respondError(bytesAt(bytes, idSpan!), { code: METHOD_NOT_FOUND, message });
  return false;
}

/** Declines a request that could be meant for several clients. */
export function declineAmbiguous(message: Message, upstream: Upstream, { name, config }: Server): void {
  // A hosted server has one instance for all clients.
  const canIsolate = config.transport.type !== 'hosted';
  const why =
    message.method === 'roots/list'
      ? sharedRoots(canIsolate)
      : `Server "${name}" sent ${message.method}, but it is not clear which client it is for.${canIsolate ? ' Set "isolation": "session" for this server.' : ''}`;
  decline(upstream, idBytes(message), new SwitchboardError('client_unavailable', why));
}

/** Many servers request roots on startup and log the response, so it must not look like a fault. */
function sharedRoots(canIsolate: boolean): string {
  const advice = canIsolate
    ? '; with "isolation": "session" each client has its own process and its roots'
    : '';
  return `There are no roots, because all clients share this server (this is normal${advice}).`;
}

export function decline(upstream: Upstream, serverId: Buffer, error: SwitchboardError): void {
  upstream.send(errorMessage(serverId, toRpcError(error)));
}

export function clientGone(): SwitchboardError {
  return new SwitchboardError('client_unavailable', 'The client disconnected before it responded.');
}

export function tooManyPending(): SwitchboardError {
  const why = 'Too many requests wait for a response of this client: retry when some have one.';
  return new SwitchboardError('client_unavailable', why);
}

import type { Channel, Receiver, RequestKind } from '../channels/channel.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import {
  byteLength,
  type Chunks,
  emptyResult,
  errorMessage,
  METHOD_NOT_FOUND,
  notificationMessage,
  type RpcError,
  requestMessage,
  resultMessage,
} from '../protocol/jsonrpc.ts';
import { idBytes, idValue, type Message } from '../protocol/message.ts';
import { greetingLine, requestLines } from '../protocol/request-lines.ts';
import { findResponseId, type ResponseId, responseIdOf } from '../protocol/response.ts';
import type { Era } from '../protocol/versions.ts';
import { type Audience, Callers } from './callers.ts';
import { InboundQueue, parseMessages } from './inbound.ts';
import {
  type ClientRequest,
  type PendingRequest,
  relayedRequest,
  type UpstreamEvents,
  withMeta,
} from './request.ts';

/** A live MCP connection to one server: its sequence of request ids, and the requests in flight. */
export class Upstream implements Receiver {
  private readonly events: UpstreamEvents;
  private channel!: Channel;
  private nextId = 1;
  private readonly calls = new Map<number, PendingRequest>();
  private readonly callers = new Callers();
  /** Exceptions in handlers are bugs, so they become unhandled rejections. */
  private readonly inbound = new InboundQueue((error) => void Promise.reject(error));
  /** Why the channel closed; what it received before is still being processed. */
  private lost: SwitchboardError | undefined;
  private gone: SwitchboardError | undefined;
  /** Set by the handshake, like the next two. */
  era: Era = 'legacy';
  /** Describes us in our own requests to a modern server. */
  ownMeta: object = {};
  /** Describes an unknown client to a modern server. */
  unknownClient: Buffer = Buffer.alloc(0);

  constructor(events: UpstreamEvents, open: (receiver: Receiver) => Channel) {
    this.events = events;
    this.channel = open(this);
    this.nextId = this.channel.firstRequest ?? 1;
  }

  get isGone(): boolean {
    return this.unreachable !== undefined;
  }

  private get unreachable(): SwitchboardError | undefined {
    return this.gone ?? this.lost;
  }

  /** Relays a client's request under an id of ours, which is also its progress token, and returns the id. */
  relay(request: ClientRequest, call: PendingRequest, parameterLines: string): number {
    if (this.unreachable !== undefined) {
      call.onError(this.unreachable, false);
      return -1;
    }
    const id = this.nextId++;
    const chunks = relayedRequest(request, id, this.era, this.unknownClient);
    this.calls.set(id, call);
    if (call.client !== undefined) this.callers.called(call.client);
    const lines = this.lines(request.message.method, request.own);
    this.channel.send(chunks, id, lines === undefined ? lines : lines + parameterLines);
    return id;
  }

  /** Whether the server is not reached over a network. */
  get isLocal(): boolean {
    return !this.channel.isStreamable;
  }

  /** Whether a legacy server can send requests: without a session it would not get the response. */
  get canSendRequests(): boolean {
    return this.channel.hasSession?.() ?? true;
  }

  /** Whether requests need headers that repeat parts of them. */
  get takesLines(): boolean {
    return this.era === 'modern' && this.channel.isStreamable;
  }

  /** Sends our own request, and returns its id. */
  request(method: string, params: unknown, call: PendingRequest, kind?: RequestKind): number {
    if (this.unreachable !== undefined) {
      call.onError(this.unreachable, false);
      return -1;
    }
    const id = this.nextId++;
    this.calls.set(id, call);
    const message = this.era === 'legacy' ? params : withMeta(params, this.ownMeta);
    this.channel.send([requestMessage(id, method, message)], id, this.lines(method, undefined, kind), kind);
    return id;
  }

  notify(method: string, params?: unknown): void {
    this.send(notificationMessage(method, params));
  }

  send(message: Buffer): void {
    if (this.unreachable === undefined) this.channel.send([message]);
  }

  /** Notifies the server, and drops a late response. */
  cancel(id: number, reason: string | undefined): void {
    const call = this.take(id);
    if (call === undefined) return;
    if (call.client !== undefined) this.callers.cancelled(id, call.client);
    // A modern HTTP request is cancelled by closing it.
    if (!this.takesLines) {
      this.notify(
        'notifications/cancelled',
        reason === undefined ? { requestId: id } : { requestId: id, reason },
      );
    }
    this.channel.abandon(id);
  }

  respond(id: Buffer, result: Buffer): void {
    this.send(Buffer.concat(resultMessage(id, result)));
  }

  respondError(id: Buffer, error: RpcError): void {
    this.send(errorMessage(id, error));
  }

  ready(version: string): void {
    this.channel.ready(version);
  }

  audience(): Audience {
    return this.callers.audience(this.calls.values());
  }

  async close(): Promise<void> {
    this.end(new SwitchboardError('server_unavailable', 'The server was stopped.'));
    await this.channel.close();
  }

  onMessage(chunks: Chunks, request?: number): void {
    if (this.gone !== undefined) return;
    const at = this.inbound.isBusy ? undefined : findResponseId(chunks);
    if (at !== undefined) this.responded(chunks, at);
    else this.inbound.handle(byteLength(chunks), () => this.arrived(chunks, request));
  }

  onRequestError(id: number, error: SwitchboardError, sent: boolean): void {
    this.inbound.handle(0, () => {
      this.take(id)?.onError(this.events.redacted(error), sent);
    });
  }

  onRequestPaused(id: number, retryMs: number): void {
    this.inbound.handle(0, () => {
      this.calls.get(id)?.onPaused?.(retryMs);
    });
  }

  onMissed(): void {
    // Its handler sends requests, whose responses must not be stuck behind it.
    this.inbound.handle(0, () => {
      this.events.missed();
    });
  }

  onStale(error: SwitchboardError, isThere: boolean): void {
    this.events.stale(this.events.redacted(error), isThere);
  }

  onClosed(error: SwitchboardError): void {
    const clean = this.events.redacted(error);
    this.lost = clean;
    this.inbound.handle(0, () => {
      if (this.gone !== undefined) return;
      // Before the calls fail: server requests are withdrawn on the streams of their calls.
      this.events.closed(clean);
      this.end(clean);
    });
  }

  log(line: string): void {
    this.events.log(line);
  }

  private arrived(chunks: Chunks, request: number | undefined): Promise<void> | void {
    if (this.gone !== undefined) return;
    const at = findResponseId(chunks);
    if (at !== undefined) return this.responded(chunks, at);
    const receive = (message: Message) => {
      if (this.gone === undefined) this.receive(message, request);
    };
    try {
      return parseMessages(chunks, this.inbound.rest, receive)?.catch((error) =>
        this.invalid(error, request),
      );
    } catch (error) {
      this.invalid(error, request);
    }
  }

  private invalid(error: unknown, request: number | undefined): void {
    const { message } = asSwitchboardError(error);
    this.events.log(`skipped an invalid message: ${message}`);
    if (request === undefined) return;
    const invalid = new SwitchboardError('server_protocol_error', `The response is invalid: ${message}`);
    this.take(request)?.onError(this.events.redacted(invalid), true);
  }

  private responded(chunks: Chunks, at: ResponseId): void {
    const call = this.take(at.id);
    if (call === undefined) {
      if (!this.callers.respondedLate(at.id))
        this.events.log(`dropped a response to no pending request (id ${at.id})`);
      return;
    }
    this.channel.settle(at.id);
    call.onResponse(chunks, at);
  }

  private receive(message: Message, request: number | undefined): void {
    switch (message.kind) {
      case 'result':
      case 'error':
        if (typeof message.id !== 'number' || message.idSpan === undefined)
          this.events.log('dropped a response without a known id');
        else this.responded([message.bytes], responseIdOf(message));
        return;
      case 'notification':
        if (message.method === 'notifications/progress') this.progressed(message);
        else if (message.method === 'notifications/subscriptions/acknowledged') this.acknowledged(message);
        else this.events.notificationReceived(message, this.callOf(request));
        return;
      case 'request':
        if (message.method === 'ping') this.respond(idBytes(message), emptyResult);
        else if (this.era === 'modern') this.rejectRequest(message);
        else this.events.requestReceived(message, this.callOf(request));
    }
  }

  private progressed(message: Message): void {
    const token = message.progressToken && idValue(message.bytes, message.progressToken);
    const call = typeof token === 'number' ? this.calls.get(token) : undefined;
    if (call === undefined) this.events.notificationReceived(message, undefined);
    else call.onProgress?.(message);
  }

  private acknowledged(message: Message): void {
    const claim = message.claims?.subscriptionId;
    const id = claim && idValue(message.bytes, claim.value);
    if (typeof id === 'number') this.calls.get(id)?.onAcknowledged?.(message);
  }

  /** Modern servers ask for input in their responses instead. */
  private rejectRequest(message: Message): void {
    this.events.log(`rejected ${message.method}: servers of its protocol version send no requests`);
    if (this.channel.isStreamable) return;
    const error = { code: METHOD_NOT_FOUND, message: `Unknown method: ${message.method}` };
    this.respondError(idBytes(message), error);
  }

  private lines(method: string, named: string | undefined, kind?: RequestKind): string | undefined {
    if (this.takesLines) return requestLines(method, named);
    // A legacy greeting may reach a modern server, which requires this header.
    return kind === 'greeting' && this.channel.isStreamable ? greetingLine : undefined;
  }

  private callOf(request: number | undefined): PendingRequest | undefined {
    return request === undefined ? undefined : this.calls.get(request);
  }

  private take(id: number): PendingRequest | undefined {
    const call = this.calls.get(id);
    this.calls.delete(id);
    return call;
  }

  private end(error: SwitchboardError): void {
    if (this.gone !== undefined) return;
    this.gone = error;
    const calls = [...this.calls.values()];
    this.calls.clear();
    for (const call of calls) call.onError(error, true);
  }
}

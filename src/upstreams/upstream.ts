import type { Channel, Receiver, RequestKind } from '../channels/channel.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import {
  byteLength,
  type Chunks,
  emptyResult,
  errorMessage,
  join,
  METHOD_NOT_FOUND,
  notificationMessage,
  type RpcError,
  resultMessage,
} from '../protocol/jsonrpc.ts';
import { LARGE_BYTES } from '../protocol/large-walk.ts';
import { idBytes, idValue, type Message } from '../protocol/message.ts';
import { readLargeMessage } from '../protocol/message-reader.ts';
import { greetingLine, requestLines } from '../protocol/request-lines.ts';
import { findResponseId, type ResponseId, responseIdOf } from '../protocol/response.ts';
import type { Era } from '../protocol/versions.ts';
import { type Audience, Callers } from './callers.ts';
import { InboundQueue, partsOf, readPart } from './inbound-queue.ts';
import type { ClientRequest, PendingRequest, UpstreamEvents } from './request.ts';
import { ownRequest, relayedRequest } from './request-writer.ts';

/** A live MCP connection to one server: its own sequence of ids, and the calls under way. */
export class Upstream implements Receiver {
  private readonly events: UpstreamEvents;
  private channel!: Channel;
  private nextId = 1;
  private readonly calls = new Map<number, PendingRequest>();
  private readonly callers = new Callers();
  /** What is thrown there is an error of ours, and told of as such. */
  private readonly inbound = new InboundQueue((error) => void Promise.reject(error));
  /** Why its channel is gone, and what came before that is still being read. */
  private lost: SwitchboardError | undefined;
  private gone: SwitchboardError | undefined;
  /** Both are for the handshake to find out. */
  era: Era = 'legacy';
  /** What a server of the modern era is told of us with every request of our own, and of those whom we do not know. */
  ownMeta: object = {};
  nobody: Buffer = Buffer.alloc(0);

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

  /** Relays a client's request under an id of ours, which also becomes its progress token. Gives that id. */
  relay(request: ClientRequest, call: PendingRequest, parameterLines: string): number {
    if (this.unreachable !== undefined) {
      call.onError(this.unreachable, false);
      return -1;
    }
    const id = this.nextId++;
    const chunks = relayedRequest(request, id, this.era, this.nobody);
    this.calls.set(id, call);
    if (call.client !== undefined) this.callers.called(call.client);
    const lines = this.lines(request.message.method, request.own);
    this.channel.send(chunks, id, lines === undefined ? lines : lines + parameterLines);
    return id;
  }

  /** Whether it is reached without a network. */
  get isLocal(): boolean {
    return !this.channel.isStreamable;
  }

  /** Whether a server of the legacy era can ask for something: without a session it would not get the answer. */
  get canAsk(): boolean {
    return this.channel.hasSession?.() ?? true;
  }

  /** Whether requests travel with headers that repeat what is in them. */
  get takesLines(): boolean {
    return this.era === 'modern' && this.channel.isStreamable;
  }

  /** Sends a request of our own, and returns its id. */
  request(method: string, params: unknown, call: PendingRequest, kind?: RequestKind): number {
    if (this.unreachable !== undefined) {
      call.onError(this.unreachable, false);
      return -1;
    }
    const id = this.nextId++;
    this.calls.set(id, call);
    const message = [ownRequest(id, method, params, this.era, this.ownMeta)];
    this.channel.send(message, id, this.lines(method, undefined, kind), kind);
    return id;
  }

  notify(method: string, params?: unknown): void {
    this.send(notificationMessage(method, params));
  }

  send(message: Buffer): void {
    if (this.unreachable === undefined) this.channel.send([message]);
  }

  /** The client does not want the answer any more: the server is told, and a late answer is dropped. */
  cancel(id: number, reason: string | undefined): void {
    const call = this.take(id);
    if (call === undefined) return;
    if (call.client !== undefined) this.callers.cancelled(id, call.client);
    // Where a request of the modern era has a connection of its own, closing that says it.
    if (!this.takesLines) {
      this.notify(
        'notifications/cancelled',
        reason === undefined ? { requestId: id } : { requestId: id, reason },
      );
    }
    this.channel.abandon(id);
  }

  answer(id: Buffer, result: Buffer): void {
    this.send(Buffer.concat(resultMessage(id, result)));
  }

  answerError(id: Buffer, error: RpcError): void {
    this.send(errorMessage(id, error));
  }

  ready(version: string): void {
    this.channel.ready(version);
  }

  /** Whom something can be meant for that the server says without saying to whom. */
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
    if (at !== undefined) this.answered(chunks, at);
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
    // What is done about it takes answers that come after it.
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
      // Questions are withdrawn on the streams of their calls, which end when the calls fail.
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
    if (at !== undefined) return this.answered(chunks, at);
    if (byteLength(chunks) > LARGE_BYTES) return this.readLarge(chunks, request);
    try {
      for (const part of partsOf(join(chunks))) this.receive(readPart(part), request);
    } catch (error) {
      this.notMcp(error, request);
    }
  }

  private async readLarge(chunks: Chunks, request: number | undefined): Promise<void> {
    try {
      const message = await readLargeMessage(join(chunks), this.inbound.rest);
      if (this.gone === undefined) this.receive(message, request);
    } catch (error) {
      this.notMcp(error, request);
    }
  }

  private notMcp(error: unknown, request: number | undefined): void {
    const { message } = asSwitchboardError(error);
    this.events.log(`a message that is not MCP is skipped: ${message}`);
    if (request === undefined) return;
    const wrong = new SwitchboardError('server_protocol_error', `The server's answer is wrong: ${message}`);
    this.take(request)?.onError(this.events.redacted(wrong), true);
  }

  private answered(chunks: Chunks, at: ResponseId): void {
    const call = this.take(at.id);
    if (call === undefined) {
      if (this.callers.answeredLate(at.id)) return;
      this.events.log(`an answer to no open request (id ${at.id}) is dropped`);
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
          this.events.log('an answer without an id of ours is dropped');
        else this.answered([message.bytes], responseIdOf(message));
        return;
      case 'notification':
        if (message.method === 'notifications/progress') this.progressed(message);
        else if (message.method === 'notifications/subscriptions/acknowledged') this.acknowledged(message);
        else this.events.notificationReceived(message, this.callOf(request));
        return;
      case 'request':
        if (message.method === 'ping') this.answer(idBytes(message), emptyResult);
        else if (this.era === 'modern') this.askedWrongly(message);
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

  /** In the modern era servers ask by their answers. */
  private askedWrongly(message: Message): void {
    this.events.log(`it asked ${message.method} by a request, which its protocol version does not have`);
    if (this.channel.isStreamable) return;
    const error = { code: METHOD_NOT_FOUND, message: `Unknown method: ${message.method}` };
    this.answerError(idBytes(message), error);
  }

  private lines(method: string, named: string | undefined, kind?: RequestKind): string | undefined {
    if (this.takesLines) return requestLines(method, named);
    // A legacy greeting may reach a modern server, which requires this header.
    return kind === 'greeting' && this.channel.isStreamable ? greetingLine : undefined;
  }

  private callOf(request: number | undefined): PendingRequest | undefined {
    return request === undefined ? undefined : this.calls.get(request);
  }

  /** The call of this id, which is over now. */
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

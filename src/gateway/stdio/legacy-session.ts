import type { SwitchboardError } from '../../errors.ts';
import { type Chunks, join, notificationMessage } from '../../protocol/jsonrpc.ts';
import { idValue, type Message } from '../../protocol/message.ts';
import { readMessage } from '../../protocol/message-reader.ts';
import { isProtocolVersion } from '../../protocol/versions.ts';
import { BridgedEra, reject, toClient } from './client.ts';

/** A key beside the URIs of subscriptions. */
const LOG_LEVEL = Symbol('log level');

const listNotifications = ['tools', 'resources', 'prompts'].map((list) =>
  notificationMessage(`notifications/${list}/list_changed`),
);

/**
 * A legacy client: one session over HTTP. When Switchboard restarts, the session is opened again, and gets the requests that
 * certainly did not reach the old one.
 */
export class LegacySession extends BridgedEra {
  private nextRequest = 1;
  private readonly pending = new Map<number, Message>();
  private readonly sentAgain = new WeakSet<Message>();
  /** The client's log level and subscriptions, to restore in a new session. */
  private readonly sessionState = new Map<unknown, Message>();
  /** Our own requests, whose responses the client does not see. */
  private readonly ours = new Set<number>();
  /** The client's request, once it has its response. */
  private initialize: Message | undefined;
  /** The request whose response has the protocol version. */
  private initializing: { request: number; isOurs: boolean } | undefined;
  private queue: Message[] | undefined;

  receive(message: Message): void {
    if (this.queue !== undefined) this.queue.push(message);
    else this.send(message);
  }

  onMessage(chunks: Chunks, request?: number): void {
    const isInitialize = request !== undefined && request === this.initializing?.request;
    if (request !== undefined) this.settleIfResponse(chunks, request, isInitialize);
    if (isInitialize && this.initializing?.isOurs) this.resume();
    else if (request === undefined || !this.ours.delete(request)) toClient(chunks);
    if (isInitialize) this.initialized();
    this.checkSettled();
  }

  onRequestError(request: number, error: SwitchboardError, sent: boolean): void {
    if (request === this.initializing?.request && this.initializing.isOurs) this.giveUp(error);
    const message = this.pending.get(request);
    this.pending.delete(request);
    if (message === undefined) return;
    if (sent || this.isClosed || this.sentAgain.has(message)) {
      reject(message, error);
      if (request === this.initializing?.request) this.initialized();
      this.checkSettled();
      return;
    }
    this.sentAgain.add(message);
    this.queue ??= [];
    this.queue.push(message);
  }

  override onClosed(error: SwitchboardError): void {
    for (const request of [...this.pending.keys()]) this.onRequestError(request, error, true);
    if (this.isClosed) return;
    this.queue ??= [];
    this.reopen();
  }

  failAll(error: SwitchboardError): void {
    const all = [...this.pending.values(), ...(this.queue ?? [])];
    this.pending.clear();
    this.queue = undefined;
    for (const message of all) if (message.kind === 'request') reject(message, error);
  }

  protected get isAwaited(): boolean {
    return this.pending.size > 0 || (this.queue?.length ?? 0) > 0;
  }

  private initialized(): void {
    const isOurs = this.initializing?.isOurs;
    this.initializing = undefined;
    if (isOurs === false) this.sendQueued();
  }

  private sendQueued(): void {
    const queued = this.queue ?? [];
    this.queue = undefined;
    for (const message of queued) this.receive(message);
  }

  private send(message: Message): void {
    if (message.kind !== 'request') {
      this.channel.send([message.bytes]);
      if (message.method === 'notifications/cancelled') this.cancel(message);
      return;
    }
    const request = this.nextRequest++;
    this.pending.set(request, message);
    this.remember(message);
    this.channel.send([message.bytes], request);
    if (message.method !== 'initialize') return;
    // There is no session for other messages before the response.
    this.initializing = { request, isOurs: false };
    this.queue ??= [];
  }

  /** A cancelled request gets no response, not even an error. */
  private cancel({ bytes, requestId }: Message): void {
    const id = requestId && idValue(bytes, requestId);
    for (const [request, message] of this.pending) {
      if (message.id !== id || message.method === 'initialize') continue;
      this.pending.delete(request);
      this.channel.abandon(request);
    }
    this.checkSettled();
  }

  private remember(message: Message): void {
    if (message.method === 'logging/setLevel') this.sessionState.set(LOG_LEVEL, message);
    if (message.method === 'resources/subscribe') this.sessionState.set(message.uri?.value, message);
    if (message.method === 'resources/unsubscribe') this.sessionState.delete(message.uri?.value);
  }

  private sendOurs({ bytes }: Message): number {
    const request = this.nextRequest++;
    this.ours.add(request);
    this.channel.send([bytes], request);
    return request;
  }

  private settleIfResponse(chunks: Chunks, request: number, isInitialize: boolean): void {
    const bytes = join(chunks);
    const { kind } = readMessage(bytes);
    if (kind !== 'result' && kind !== 'error') return;
    const message = this.pending.get(request);
    this.pending.delete(request);
    if (isInitialize && kind === 'result') {
      this.initialize ??= message;
      const { result } = JSON.parse(bytes.toString()) as { result?: { protocolVersion?: unknown } };
      if (isProtocolVersion(result?.protocolVersion)) this.channel.ready(result.protocolVersion);
    }
    this.channel.settle(request);
  }

  protected onReopened(): void {
    if (this.initialize === undefined) this.resume();
    else this.initializing = { request: this.sendOurs(this.initialize), isOurs: true };
  }

  private resume(): void {
    if (this.initialize !== undefined) {
      this.channel.send([notificationMessage('notifications/initialized')]);
      for (const message of this.sessionState.values()) this.sendOurs(message);
      // Another Switchboard may have other servers.
      for (const notification of listNotifications) toClient([notification]);
    }
    this.sendQueued();
  }

  protected failUnsent(error: SwitchboardError): void {
    for (const message of this.queue ?? []) if (message.kind === 'request') reject(message, error);
    this.queue = [];
  }
}

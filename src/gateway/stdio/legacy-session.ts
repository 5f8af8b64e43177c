import type { Receiver } from '../../channels/channel.ts';
import { HttpChannel } from '../../channels/http.ts';
import { asSwitchboardError, type SwitchboardError } from '../../errors.ts';
import { bytesAt, idBytes, idValue, type Message, readMessage } from '../../protocol/envelope.ts';
import { type Chunks, errorMessage, join, notificationMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import { isProtocolVersion } from '../../protocol/versions.ts';
import { hangUp, MAX_BYTES, toClient } from './client.ts';
import type { Switchboard } from './switchboard.ts';

/** Stands beside the URIs of followed resources. */
const LOG_LEVEL = Symbol('log level');

const listNotifications = ['tools', 'resources', 'prompts'].map((list) =>
  notificationMessage(`notifications/${list}/list_changed`),
);

/**
 * A client of the legacy era: one session on HTTP. When Switchboard is restarted, the session is opened again, and the
 * requests go there that have certainly not reached the old one.
 */
export class LegacySession implements Receiver {
  private readonly switchboard: Switchboard;
  private channel: HttpChannel;
  private nextRequest = 1;
  private readonly unanswered = new Map<number, Message>();
  private readonly sentAgain = new WeakSet<Message>();
  /** What the client asked for once and still wants of a new session: a log level, resources that it follows. */
  private readonly wishes = new Map<unknown, Message>();
  /** Requests of our own: the client does not see their answers. */
  private readonly ours = new Set<number>();
  /** The client's, once it was answered. */
  private initialize: Message | undefined;
  /** The request whose answer tells the protocol version. */
  private initializing: { request: number; isOurs: boolean } | undefined;
  /** What waits until there is a session. */
  private held: Message[] | undefined;
  private isClosed = false;
  private whenAnswered: (() => void) | undefined;

  constructor(switchboard: Switchboard) {
    this.switchboard = switchboard;
    this.channel = this.open();
  }

  receive(message: Message): void {
    if (this.held !== undefined) this.held.push(message);
    else this.send(message);
  }

  onMessage(chunks: Chunks, request?: number): void {
    const isInitialize = request !== undefined && request === this.initializing?.request;
    if (request !== undefined) this.settleIfAnswer(chunks, request, isInitialize);
    if (isInitialize && this.initializing?.isOurs) this.resumed();
    else if (request === undefined || !this.ours.delete(request)) toClient(chunks);
    if (isInitialize) this.initialized();
    this.noticeLastAnswer();
  }

  onRequestError(request: number, error: SwitchboardError, sent: boolean): void {
    if (request === this.initializing?.request && this.initializing.isOurs) this.giveUp(error);
    const message = this.unanswered.get(request);
    this.unanswered.delete(request);
    if (message === undefined) return;
    if (sent || this.isClosed || this.sentAgain.has(message)) {
      toClient([errorMessage(idBytes(message), toRpcError(error))]);
      if (request === this.initializing?.request) this.initialized();
      this.noticeLastAnswer();
      return;
    }
    this.sentAgain.add(message);
    this.held ??= [];
    this.held.push(message);
  }

  onClosed(error: SwitchboardError): void {
    for (const request of [...this.unanswered.keys()]) this.onRequestError(request, error, true);
    if (this.isClosed) return;
    this.held ??= [];
    this.reopen().catch((failure: unknown) => this.giveUp(failure));
  }

  onRequestPaused(): void {}

  onStale(): void {}

  onMissed(): void {}

  log(line: string): void {
    this.switchboard.log(line);
  }

  /** Settles when every request of the client has its answer. */
  answered(): Promise<void> {
    return new Promise((resolve) => {
      this.whenAnswered = resolve;
      this.noticeLastAnswer();
    });
  }

  /** Answers every request of the client that has no answer yet. */
  failAll(error: SwitchboardError): void {
    const waiting = [...this.unanswered.values(), ...(this.held ?? [])];
    this.unanswered.clear();
    this.held = undefined;
    for (const message of waiting)
      if (message.kind === 'request') toClient([errorMessage(idBytes(message), toRpcError(error))]);
  }

  close(): Promise<void> {
    this.isClosed = true;
    return this.channel.close();
  }

  private noticeLastAnswer(): void {
    const isWaiting = this.unanswered.size > 0 || (this.held?.length ?? 0) > 0;
    if (!isWaiting) this.whenAnswered?.();
  }

  /** The client's initialize has its answer: what it sent behind it can go. */
  private initialized(): void {
    const isOurs = this.initializing?.isOurs;
    this.initializing = undefined;
    if (isOurs === false) this.sendHeld();
  }

  private sendHeld(): void {
    const held = this.held ?? [];
    this.held = undefined;
    for (const message of held) {
      if (this.held === undefined) this.send(message);
      else (this.held as Message[]).push(message);
    }
  }

  private open(): HttpChannel {
    const { endpoint: url, pass } = this.switchboard;
    return new HttpChannel({ url, ...pass }, MAX_BYTES, this);
  }

  private send(message: Message): void {
    if (message.kind !== 'request') {
      this.channel.send([message.bytes]);
      if (message.method === 'notifications/cancelled') this.cancelled(message);
      return;
    }
    const request = this.nextRequest++;
    this.unanswered.set(request, message);
    this.remember(message);
    this.channel.send([message.bytes], request);
    if (message.method !== 'initialize') return;
    // There is no session to send anything else to before this is answered.
    this.initializing = { request, isOurs: false };
    this.held ??= [];
  }

  /** What is cancelled gets no answer, not even that there is none. */
  private cancelled({ bytes, requestId }: Message): void {
    const id = requestId && idValue(bytes, requestId);
    for (const [request, message] of this.unanswered) {
      if (message.id !== id || message.method === 'initialize') continue;
      this.unanswered.delete(request);
      this.channel.abandon(request);
    }
    this.noticeLastAnswer();
  }

  private remember(message: Message): void {
    if (message.method === 'logging/setLevel') this.wishes.set(LOG_LEVEL, message);
    if (message.method === 'resources/subscribe') this.wishes.set(message.uri?.value, message);
    if (message.method === 'resources/unsubscribe') this.wishes.delete(message.uri?.value);
  }

  /** A request whose answer is not for the client. */
  private sendOurs({ bytes }: Message): number {
    const request = this.nextRequest++;
    this.ours.add(request);
    this.channel.send([bytes], request);
    return request;
  }

  private settleIfAnswer(chunks: Chunks, request: number, isInitialize: boolean): void {
    const bytes = join(chunks);
    const { kind } = readMessage(bytes);
    if (kind !== 'result' && kind !== 'error') return;
    const message = this.unanswered.get(request);
    this.unanswered.delete(request);
    if (isInitialize && kind === 'result') {
      this.initialize ??= message;
      const { result } = JSON.parse(bytes.toString()) as { result?: { protocolVersion?: unknown } };
      if (isProtocolVersion(result?.protocolVersion)) this.channel.ready(result.protocolVersion);
    }
    this.channel.settle(request);
  }

  private async reopen(): Promise<void> {
    await this.switchboard.ensureRunning();
    if (this.isClosed) return;
    this.channel = this.open();
    if (this.initialize === undefined) {
      this.resumed();
      return;
    }
    this.initializing = { request: this.sendOurs(this.initialize), isOurs: true };
  }

  private resumed(): void {
    if (this.initialize !== undefined) {
      this.channel.send([notificationMessage('notifications/initialized')]);
      for (const message of this.wishes.values()) this.sendOurs(message);
      // Another Switchboard may have other servers.
      for (const notification of listNotifications) toClient([notification]);
    }
    this.sendHeld();
  }

  private giveUp(failure: unknown): void {
    const error = asSwitchboardError(failure);
    this.switchboard.log(error.message);
    for (const { kind, bytes, idSpan } of this.held ?? []) {
      if (kind === 'request') toClient([errorMessage(bytesAt(bytes, idSpan!), toRpcError(error))]);
    }
    this.held = [];
    hangUp();
  }
}

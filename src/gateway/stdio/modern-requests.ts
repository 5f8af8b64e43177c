import { randomUUID } from 'node:crypto';
import type { Receiver } from '../../channels/channel.ts';
import { HttpChannel } from '../../channels/http.ts';
import { asSwitchboardError, type SwitchboardError } from '../../errors.ts';
import { idBytes, idValue, type Message, readMessage } from '../../protocol/envelope.ts';
import { type Chunks, errorMessage, join, toRpcError } from '../../protocol/jsonrpc.ts';
import { requestLines } from '../../protocol/request-lines.ts';
import { isDescribed } from '../../protocol/self-description.ts';
import { hangUp, MAX_BYTES, toClient } from './client.ts';
import { LISTEN, ListenRequest } from './listen-request.ts';
import { ModernRequest } from './modern-request.ts';
import type { Switchboard } from './switchboard.ts';

const CANCELLED = 'notifications/cancelled';
/** Whoever restarts Switchboard has this long before a subscription that was lost is asked for again. */
const LISTEN_AGAIN_MS = 1_000;

/** A client of the modern era: each of its requests is a POST of its own, and all that belongs to it comes back there. */
export class ModernRequests implements Receiver {
  private readonly switchboard: Switchboard;
  /** They say that no arguments are repeated in headers, and as whom the client comes again. */
  private readonly headers = { 'x-switchboard-channel': 'stdio', 'x-switchboard-session': randomUUID() };
  private channel: HttpChannel;
  private isReopening = false;
  private isClosed = false;
  private nextNumber = 1;
  private readonly unanswered = new Set<ModernRequest>();
  /** Those of them that were sent. */
  private readonly byNumber = new Map<number, ModernRequest>();
  private whenAnswered: (() => void) | undefined;

  constructor(switchboard: Switchboard) {
    this.switchboard = switchboard;
    this.channel = this.open();
  }

  /** A cancellation need not say of which era it is; what it cancels does. */
  takes(message: Message): boolean {
    return isDescribed(message) || this.cancelledBy(message).length > 0;
  }

  receive(message: Message): void {
    if (message.kind === 'request') {
      const isListen = message.method === LISTEN;
      this.unanswered.add(isListen ? new ListenRequest(message) : new ModernRequest(message));
      this.sendWaiting();
    } else if (message.method === CANCELLED) {
      for (const request of this.cancelledBy(message)) this.cancel(request);
    } else {
      this.channel.send([message.bytes], undefined, requestLines(message.method, undefined));
    }
  }

  onMessage(chunks: Chunks, number?: number): void {
    const request = number === undefined ? undefined : this.byNumber.get(number);
    if (request === undefined) return;
    const message = readMessage(join(chunks));
    if (message.kind === 'result' || message.kind === 'error') this.takeAnswer(request, message);
    else for (const told of request.relay(message)) toClient([told]);
    this.noticeLastAnswer();
  }

  onRequestError(number: number, error: SwitchboardError, sent: boolean): void {
    const request = this.byNumber.get(number);
    this.byNumber.delete(number);
    if (request === undefined) return;
    request.number = undefined;
    if (request.outlastsFailure(error, sent)) this.sendWaitingLater();
    else this.fail(request, error);
  }

  /** What is under way there may still be answered; all else goes over a new one. */
  onStale(): void {
    if (this.isClosed) return;
    this.isReopening = true;
    this.reopen().catch((failure: unknown) => this.giveUp(failure));
  }

  onClosed(): void {}

  onRequestPaused(): void {}

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

  /** Answers every request of the client that waits for an answer. */
  failAll(error: SwitchboardError): void {
    for (const request of [...this.unanswered]) {
      if (!request.isAwaited) continue;
      request.abandon();
      this.fail(request, error);
    }
  }

  close(): Promise<void> {
    this.isClosed = true;
    for (const request of this.unanswered) request.abandon();
    return this.channel.close();
  }

  private noticeLastAnswer(): void {
    for (const { isAwaited } of this.unanswered) if (isAwaited) return;
    this.whenAnswered?.();
  }

  private open(): HttpChannel {
    const { endpoint: url, pass } = this.switchboard;
    return new HttpChannel(
      { url, ...pass, headers: { ...this.headers, ...pass.headers }, isNamed: true },
      MAX_BYTES,
      this,
    );
  }

  private sendWaiting(): void {
    if (this.isReopening || this.isClosed) return;
    for (const request of this.unanswered) {
      if (request.number !== undefined) continue;
      const number = this.nextNumber++;
      this.byNumber.set(number, request);
      request.send(this.channel, number);
    }
  }

  private sendWaitingLater(): void {
    setTimeout(() => this.sendWaiting(), LISTEN_AGAIN_MS).unref();
  }

  private takeAnswer(request: ModernRequest, answer: Message): void {
    this.byNumber.delete(request.number!);
    request.settle();
    if (request.outlastsAnswer(answer)) {
      this.sendWaitingLater();
      return;
    }
    this.unanswered.delete(request);
    toClient([request.relayAnswer(answer)]);
  }

  private fail(request: ModernRequest, error: SwitchboardError): void {
    this.unanswered.delete(request);
    toClient([errorMessage(idBytes(request.message), toRpcError(error, 'modern'))]);
    this.noticeLastAnswer();
  }

  private cancelledBy({ method, bytes, requestId }: Message): ModernRequest[] {
    if (method !== CANCELLED || requestId === undefined) return [];
    const id = idValue(bytes, requestId);
    return [...this.unanswered].filter(({ message }) => message.id === id);
  }

  /** What is cancelled gets no answer, not even that there is none. */
  private cancel(request: ModernRequest): void {
    this.unanswered.delete(request);
    if (request.number !== undefined) this.byNumber.delete(request.number);
    request.abandon();
    this.noticeLastAnswer();
  }

  private async reopen(): Promise<void> {
    await this.switchboard.ensureRunning();
    if (this.isClosed) return;
    this.channel = this.open();
    this.isReopening = false;
    this.sendWaiting();
  }

  private giveUp(failure: unknown): void {
    const error = asSwitchboardError(failure);
    this.switchboard.log(error.message);
    for (const request of [...this.unanswered]) if (request.number === undefined) this.fail(request, error);
    hangUp();
  }
}

import { randomUUID } from 'node:crypto';
import type { SwitchboardError } from '../../errors.ts';
import { type Chunks, join } from '../../protocol/jsonrpc.ts';
import { idValue, type Message } from '../../protocol/message.ts';
import { readMessage } from '../../protocol/message-reader.ts';
import { requestLines } from '../../protocol/request-lines.ts';
import { isDescribed } from '../../protocol/self-description.ts';
import { BridgedEra, type RunningSwitchboard, reject, toClient } from './client.ts';
import { LISTEN, ListenRequest, ModernRequest } from './modern-request.ts';

const CANCELLED = 'notifications/cancelled';
/** The delay before a lost subscription is requested again: Switchboard may be restarting. */
const LISTEN_AGAIN_MS = 1_000;

/** A modern client: each request is a POST, and all of its messages come back there. */
export class ModernRequests extends BridgedEra {
  private isReopening = false;
  private nextNumber = 1;
  private readonly pending = new Set<ModernRequest>();
  private readonly byNumber = new Map<number, ModernRequest>();

  constructor(switchboard: RunningSwitchboard) {
    // No arguments are repeated in headers, and the client keeps its identity between requests.
    super(switchboard, { 'x-switchboard-channel': 'stdio', 'x-switchboard-session': randomUUID() });
  }

  /** A cancellation may not declare its era, so the cancelled request decides. */
  takes(message: Message): boolean {
    return isDescribed(message) || this.cancelledBy(message).length > 0;
  }

  receive(message: Message): void {
    if (message.kind === 'request') {
      this.pending.add(message.method === LISTEN ? new ListenRequest(message) : new ModernRequest(message));
      this.sendPending();
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
    if (message.kind === 'result' || message.kind === 'error') this.settle(request, message);
    else for (const notification of request.relay(message)) toClient([notification]);
    this.checkSettled();
  }

  onRequestError(number: number, error: SwitchboardError, sent: boolean): void {
    const request = this.byNumber.get(number);
    this.byNumber.delete(number);
    if (request === undefined) return;
    request.number = undefined;
    if (request.outlastsFailure(error, sent)) this.sendPendingLater();
    else this.fail(request, error);
  }

  /** Requests in flight may still get responses; all others go over a new channel. */
  override onStale(): void {
    if (this.isClosed) return;
    this.isReopening = true;
    this.reopen();
  }

  failAll(error: SwitchboardError): void {
    for (const request of [...this.pending]) {
      if (!request.isAwaited) continue;
      request.abandon();
      this.fail(request, error);
    }
  }

  override close(): Promise<void> {
    for (const request of this.pending) request.abandon();
    return super.close();
  }

  protected get isAwaited(): boolean {
    return [...this.pending].some((request) => request.isAwaited);
  }

  private sendPending(): void {
    if (this.isReopening || this.isClosed) return;
    for (const request of this.pending) {
      if (request.number !== undefined) continue;
      const number = this.nextNumber++;
      this.byNumber.set(number, request);
      request.send(this.channel, number);
    }
  }

  private sendPendingLater(): void {
    setTimeout(() => this.sendPending(), LISTEN_AGAIN_MS).unref();
  }

  private settle(request: ModernRequest, response: Message): void {
    this.byNumber.delete(request.number!);
    request.settle();
    if (request.outlastsResponse(response)) {
      this.sendPendingLater();
      return;
    }
    this.pending.delete(request);
    toClient([request.relayResponse(response)]);
  }

  private fail(request: ModernRequest, error: SwitchboardError): void {
    this.pending.delete(request);
    reject(request.message, error, 'modern');
    this.checkSettled();
  }

  private cancelledBy({ method, bytes, requestId }: Message): ModernRequest[] {
    if (method !== CANCELLED || requestId === undefined) return [];
    const id = idValue(bytes, requestId);
    return [...this.pending].filter(({ message }) => message.id === id);
  }

  /** A cancelled request gets no response, not even an error. */
  private cancel(request: ModernRequest): void {
    this.pending.delete(request);
    if (request.number !== undefined) this.byNumber.delete(request.number);
    request.abandon();
    this.checkSettled();
  }

  protected onReopened(): void {
    this.isReopening = false;
    this.sendPending();
  }

  protected failUnsent(error: SwitchboardError): void {
    for (const request of [...this.pending]) if (request.number === undefined) this.fail(request, error);
  }
}

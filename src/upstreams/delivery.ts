import { isRefusal } from '../channels/errors.ts';
import { asSwitchboardError, type SwitchboardError } from '../errors.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Message } from '../protocol/message.ts';
import type { ResponseId } from '../protocol/response.ts';
import type { Era } from '../protocol/versions.ts';
import type { Connection } from './connection.ts';
import type { Group } from './group.ts';
import type { Replica } from './replica.ts';
import type { Client, PendingRequest } from './request.ts';
import type { ResponseHandler, RoutedRequest } from './routed-request.ts';
import { callTimeout, isConnectionLoss, maybeExecuted, named, queueFull } from './server-errors.ts';
import type { SlotRequest } from './slots.ts';
import type { Upstream } from './upstream.ts';

/** A call that timed out earlier, by a limit of its client, says nothing about the server. */
const SHORT_TIMEOUT_MS = 5_000;

/**
 * One request: picks a replica, waits for its start and a slot, sends, and awaits the response. Tries another replica if the
 * request certainly was not executed or may be repeated; otherwise a request is never sent twice.
 */
export class Delivery implements PendingRequest, SlotRequest {
  readonly client: Client;
  readonly handler: ResponseHandler;
  private readonly group: Group;
  private readonly request: RoutedRequest;
  replica: Replica | undefined;
  private connection: Connection | undefined;
  private upstream: Upstream | undefined;
  private upstreamId = -1;
  private sends = 0;
  private waits = 0;
  private isQueued = false;
  private holdsSlot = false;
  private isOver = false;
  /** Replicas that are not tried again, and why. */
  private tried: Map<Replica, SwitchboardError> | undefined;
  /** Replicas that the request did not reach; each is tried once more, since a lost session causes that. */
  private unreached: Set<Replica> | undefined;
  private lastError: SwitchboardError | undefined;
  private timer: NodeJS.Timeout | undefined;
  private startedAt = 0;
  private lastProgress = 0;

  constructor(group: Group, request: RoutedRequest, handler: ResponseHandler) {
    this.group = group;
    this.request = request;
    this.client = request.client;
    this.handler = handler;
  }

  get carrier(): { replica: Replica; upstream: Upstream; id: number } | undefined {
    const { replica, upstream, upstreamId: id } = this;
    return replica && upstream && { replica, upstream, id };
  }

  get era(): Era | undefined {
    return this.upstream?.era;
  }

  begin(): void {
    const replica = this.group.pick(this.request, this.tried);
    if (replica === undefined) this.fail(this.group.refuse(this.request, this.tried, this.lastError));
    else {
      this.replica = replica;
      this.connection = replica.connections.for(this.client, this.request.description);
      this.enqueue(this.connection);
    }
  }

  cancel(reason: string | undefined): void {
    if (this.isOver) return;
    this.withdraw(reason);
    this.finish();
  }

  admitted(): void {
    this.isQueued = false;
    this.holdsSlot = true;
    this.proceed(this.connection!);
  }

  evicted(): void {
    this.isQueued = false;
    this.tryElsewhere(queueFull(this.replica!.server));
  }

  onResponse(chunks: Chunks, at: ResponseId): void {
    if (!this.finish()) return;
    this.replica!.callSucceeded();
    this.handler.onResponse(chunks, at);
  }

  onError(error: SwitchboardError, sent: boolean): void {
    if (this.isOver) return;
    this.upstream = undefined;
    this.releaseSlot();
    if (sent) this.maybeExecuted(error);
    else this.notExecuted(error);
  }

  onProgress(message: Message): void {
    if (this.isOver) return;
    this.lastProgress = performance.now();
    this.handler.onProgress(message);
  }

  onPaused(retryMs: number): void {
    if (!this.isOver) this.handler.onPaused(retryMs);
  }

  /** Takes a slot or waits for one, whether the server runs or must be started. */
  private enqueue(connection: Connection): void {
    // A first start has its own timeout, unless the client set one for the call.
    const isOpen = connection.current !== undefined;
    if (isOpen || this.request.timeoutMs !== undefined || connection.wasLost) this.startTimer();
    if (connection.slots.take()) {
      this.holdsSlot = true;
      this.proceed(connection);
      return;
    }
    this.isQueued = connection.slots.wait(this);
    if (!this.isQueued) this.evicted();
    else if (!isOpen) this.awaitOpen(connection);
  }

  private proceed(connection: Connection): void {
    const live = connection.current;
    if (live !== undefined) {
      this.startTimer();
      this.send(live.upstream);
    } else if (this.canMoveOn()) this.moveOn();
    else this.awaitOpen(connection);
  }

  /** Waits until this connection is open, or one to another replica that can do the same. */
  private awaitOpen(connection: Connection): void {
    const { refusal } = connection;
    if (refusal !== undefined) {
      this.notOpened(refusal);
      return;
    }
    const wait = ++this.waits;
    const isCurrent = () => !this.isOver && this.waits === wait && this.upstream === undefined;
    Promise.any([connection.open(), ...this.group.openings(this.request, this.tried)]).then(
      () => isCurrent() && this.opened(connection),
      ({ errors }: AggregateError) => isCurrent() && this.notOpened(errors[0]),
    );
  }

  private opened(connection: Connection): void {
    const isOutdated = this.replica!.connections.isOutdated(connection, this.client);
    if (connection.current === undefined || isOutdated) this.moveOn();
    else if (this.isQueued) this.startTimer();
    else this.proceed(connection);
  }

  private notOpened(error: SwitchboardError): void {
    const replica = this.replica!;
    this.lastError = error;
    if (replica.connections.isOutdated(this.connection!, this.client)) {
      this.moveOn();
      return;
    }
    this.leaveQueue();
    replica.health.note(error);
    this.tryElsewhere(error);
  }

  /** A live replica that is not connected in the client's era yet is waited for instead. */
  private canMoveOn(): boolean {
    const replica = this.replica!;
    return !replica.isLive && this.group.hasOther(this.request, new Set(this.tried?.keys()).add(replica));
  }

  private moveOn(): void {
    this.leaveQueue();
    this.begin();
  }

  private leaveQueue(): void {
    if (this.isQueued) this.connection!.slots.leave(this);
    this.isQueued = false;
    this.releaseSlot();
  }

  private send(upstream: Upstream): void {
    let lines = '';
    try {
      if (upstream.takesLines) lines = this.replica!.discovery.known?.parameterLines(this.request) ?? '';
    } catch (error) {
      this.fail(asSwitchboardError(error));
      return;
    }
    const send = ++this.sends;
    this.upstream = upstream;
    this.replica!.used();
    const id = upstream.relay(this.request, this, lines);
    // It may have failed and been sent elsewhere before relay() returned.
    if (send === this.sends) this.upstreamId = id;
  }

  private notExecuted(error: SwitchboardError): void {
    const replica = this.replica!;
    this.lastError = named(error, replica.server);
    const isRefused = isRefusal(error.data.status);
    if (isRefused) replica.callFailed(this.lastError, true);
    // A replica that refused would refuse again.
    if (isRefused || this.unreached?.has(replica)) this.tryElsewhere(this.lastError);
    else {
      this.unreached ??= new Set();
      this.unreached.add(replica);
      this.begin();
    }
  }

  private maybeExecuted(failure: SwitchboardError): void {
    const error = named(failure, this.replica!.server);
    this.replica!.callFailed(error, true);
    const tried = this.noteTried(error);
    if (this.request.isRepeatable && this.group.hasOther(this.request, tried)) {
      this.begin();
      return;
    }
    if (error.code === 'server_unavailable') this.group.outages.add(error);
    this.fail(isConnectionLoss(error) ? maybeExecuted(error) : error);
  }

  private tryElsewhere(error: SwitchboardError): void {
    this.noteTried(error);
    this.begin();
  }

  private noteTried(error: SwitchboardError): ReadonlyMap<Replica, SwitchboardError> {
    this.lastError = error;
    this.tried ??= new Map();
    return this.tried.set(this.replica!, error);
  }

  private get timeoutMs(): number {
    const { timeoutMs, maxTimeoutMs } = this.replica!.config;
    return Math.min(this.request.timeoutMs ?? timeoutMs, maxTimeoutMs);
  }

  private startTimer(): void {
    if (this.timer !== undefined) return;
    this.startedAt = performance.now();
    this.lastProgress = this.startedAt;
    this.timer = setTimeout(() => this.checkTime(), this.timeoutMs);
  }

  /** Progress, and time that the server waited for the client, extend the deadline up to maxTimeoutMs. */
  private checkTime(): void {
    const now = performance.now();
    const waited = this.upstream === undefined ? 0 : this.handler.waitedUntil(this.upstream, now);
    this.lastProgress = Math.max(this.lastProgress, waited);
    const latest = this.startedAt + this.replica!.config.maxTimeoutMs;
    const deadline = Math.min(this.lastProgress + this.timeoutMs, latest);
    if (deadline > now) this.timer = setTimeout(() => this.checkTime(), deadline - now);
    else this.timedOut(Math.round(now - this.startedAt));
  }

  private timedOut(waitedMs: number): void {
    const replica = this.replica!;
    const what = this.upstream ? 'did not respond' : this.isQueued ? 'had no free slot' : 'was not available';
    const error = callTimeout(replica.config, what, waitedMs, this.timeoutMs, this.request.timeoutMs);
    const isServerFault = waitedMs >= Math.min(replica.config.timeoutMs, SHORT_TIMEOUT_MS);
    if (this.upstream !== undefined) replica.callFailed(error, isServerFault);
    this.withdraw('The call timed out.');
    this.fail(error);
  }

  private withdraw(reason: string | undefined): void {
    if (this.isQueued) this.connection!.slots.leave(this);
    this.upstream?.cancel(this.upstreamId, reason);
  }

  private fail(error: SwitchboardError): void {
    if (this.finish()) this.handler.onError(error);
  }

  private finish(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    clearTimeout(this.timer);
    this.replica?.used();
    this.releaseSlot();
    return true;
  }

  private releaseSlot(): void {
    if (!this.holdsSlot) return;
    this.holdsSlot = false;
    this.connection!.slots.release();
  }
}

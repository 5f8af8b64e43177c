import { isRefusal } from '../channels/errors.ts';
import { asSwitchboardError, type SwitchboardError } from '../errors.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Message } from '../protocol/message.ts';
import type { ResponseId } from '../protocol/response.ts';
import type { Era } from '../protocol/versions.ts';
import type { Connection } from './connection.ts';
import { Deadline, type TimeLimits } from './deadline.ts';
import type { Group } from './group.ts';
import type { Replica } from './replica.ts';
import type { Client, PendingRequest } from './request.ts';
import type { ResponseHandler, RoutedRequest } from './routed-request.ts';
import { isCutOff, maybeExecuted, named, timedOut, tooManyWait } from './server-errors.ts';
import type { SlotRequest } from './slots.ts';
import type { Upstream } from './upstream.ts';

/** A client that waits for less than this is in a hurry. */
const HURRY_MS = 5_000;

/**
 * One request on its way: pick a replica, wait until it is there and has a slot, send, await. Where it certainly was
 * not executed, or does no harm twice, another replica is tried; a request that was sent is otherwise never sent again.
 */
export class Delivery extends Deadline implements PendingRequest, SlotRequest {
  readonly client: Client;
  readonly handler: ResponseHandler;
  private readonly group: Group;
  private readonly request: RoutedRequest;
  /** The replica that was tried last. */
  replica: Replica | undefined;
  private connection: Connection | undefined;
  private upstream: Upstream | undefined;
  private upstreamId = -1;
  private sends = 0;
  private waits = 0;
  private isQueued = false;
  private holdsSlot = false;
  private isOver = false;
  /** Where it is not tried again, and what came of it there. */
  private tried: Map<Replica, SwitchboardError> | undefined;
  /** Where it did not get through although the replica seemed to be there: that happens when a server forgets us. */
  private unreached: Set<Replica> | undefined;
  private lastError: SwitchboardError | undefined;

  constructor(group: Group, request: RoutedRequest, handler: ResponseHandler) {
    super();
    this.group = group;
    this.request = request;
    this.client = request.client;
    this.handler = handler;
  }

  /** Who has it, and under which id. */
  get carrier(): { replica: Replica; upstream: Upstream; id: number } | undefined {
    const { replica, upstream, upstreamId: id } = this;
    return replica && upstream && { replica, upstream, id };
  }

  /** The era of who has it. */
  get era(): Era | undefined {
    return this.upstream?.era;
  }

  begin(): void {
    const replica = this.group.pick(this.request, this.tried);
    if (replica === undefined) {
      this.fail(this.group.refuse(this.request, this.tried, this.lastError));
      return;
    }
    this.replica = replica;
    this.connection = replica.connections.for(this.client, this.request.description);
    this.lineUp(this.connection);
  }

  /** Nobody wants the answer any more. */
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
    this.foundNoPlace();
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
    if (sent) this.executedMaybe(error);
    else this.notExecuted(error);
  }

  onProgress(message: Message): void {
    if (this.isOver) return;
    this.showsLife();
    this.handler.onProgress(message);
  }

  onPaused(retryMs: number): void {
    if (!this.isOver) this.handler.onPaused(retryMs);
  }

  /** Takes a slot, or waits for one, whether the server is there already or has to be started. */
  private lineUp(connection: Connection): void {
    // Where the client says how long, that is all the time there is. A first start has a limit of its own otherwise.
    const isThere = connection.current !== undefined;
    if (isThere || this.request.timeoutMs !== undefined || connection.wasLost) this.startClock();
    if (connection.slots.take()) {
      this.holdsSlot = true;
      this.proceed(connection);
      return;
    }
    this.isQueued = connection.slots.wait(this);
    if (!this.isQueued) this.foundNoPlace();
    else if (!isThere) this.awaitOpen(connection);
  }

  private proceed(connection: Connection): void {
    const live = connection.current;
    if (live !== undefined) {
      this.startClock();
      this.send(live.upstream);
    } else if (this.canMoveOn()) this.moveOn();
    else this.awaitOpen(connection);
  }

  /** Until it is there, or another one that can do the same. */
  private awaitOpen(connection: Connection): void {
    const { refusal } = connection;
    if (refusal !== undefined) {
      this.notOpened(refusal);
      return;
    }
    const wait = ++this.waits;
    const isCurrent = () => !this.isOver && this.waits === wait && this.upstream === undefined;
    const opening = connection.open();
    const others = this.group.openings(this.request, this.tried);
    const first = others.length === 0 ? opening : Promise.any([opening, ...others]);
    first.then(
      () => isCurrent() && this.opened(connection),
      (error: SwitchboardError | AggregateError) =>
        isCurrent() && this.notOpened(error instanceof AggregateError ? error.errors[0] : error),
    );
  }

  private opened(connection: Connection): void {
    const isRight = !this.replica!.connections.isOutdated(connection, this.client);
    if (connection.current === undefined || !isRight) this.moveOn();
    else if (this.isQueued) this.startClock();
    else this.proceed(connection);
  }

  private notOpened(error: SwitchboardError): void {
    const replica = this.replica!;
    this.lastError = error;
    this.leaveLine();
    if (replica.connections.isOutdated(this.connection!, this.client)) {
      this.begin();
      return;
    }
    replica.callRefused(error);
    this.tryElsewhere(error);
  }

  /** One that is there, but not for this client yet, is waited for: it is being opened in the client's era. */
  private canMoveOn(): boolean {
    const replica = this.replica!;
    return !replica.isLive && this.group.hasOther(this.request, new Set(this.tried?.keys()).add(replica));
  }

  private moveOn(): void {
    this.leaveLine();
    this.begin();
  }

  private leaveLine(): void {
    if (this.isQueued) this.connection!.slots.leave(this);
    this.isQueued = false;
    this.releaseSlot();
  }

  private foundNoPlace(): void {
    this.tryElsewhere(tooManyWait(this.replica!.server));
  }

  private send(upstream: Upstream): void {
    let lines = '';
    try {
      if (upstream.takesLines) lines = this.replica!.offer?.parameterLines(this.request) ?? '';
    } catch (error) {
      this.fail(asSwitchboardError(error));
      return;
    }
    const send = ++this.sends;
    this.upstream = upstream;
    this.replica!.used();
    const id = upstream.relay(this.request, this, lines);
    // It may have failed, and been sent elsewhere, before the call above came back.
    if (send === this.sends) this.upstreamId = id;
  }

  private notExecuted(error: SwitchboardError): void {
    const replica = this.replica!;
    this.lastError = named(error, replica.server);
    const isRefused = isRefusal(error.data.status);
    if (isRefused) replica.callFailed(this.lastError, true);
    // Asked again at once, one that refused would refuse again.
    if (isRefused || this.unreached?.has(replica)) {
      this.tryElsewhere(this.lastError);
      return;
    }
    this.unreached ??= new Set();
    this.unreached.add(replica);
    this.begin();
  }

  private executedMaybe(failure: SwitchboardError): void {
    const error = named(failure, this.replica!.server);
    this.replica!.callFailed(error, true);
    const tried = this.noteTried(error);
    if (this.request.isRepeatable && this.group.hasOther(this.request, tried)) this.begin();
    else {
      if (error.code === 'server_unavailable') this.group.callLost(error);
      this.fail(isCutOff(error) ? maybeExecuted(error) : error);
    }
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

  private fail(error: SwitchboardError): void {
    if (this.finish()) this.handler.onError(error);
  }

  protected override limits(): TimeLimits {
    const { timeoutMs, maxTimeoutMs } = this.replica!.limits;
    return { timeoutMs: Math.min(this.request.timeoutMs ?? timeoutMs, maxTimeoutMs), maxTimeoutMs };
  }

  protected override excusedUntil(now: number): number {
    return this.upstream === undefined ? 0 : this.handler.waitedUntil(this.upstream, now);
  }

  protected override timeIsUp(waited: number, { timeoutMs }: TimeLimits): void {
    const { server, timeoutSetting } = this.replica!;
    const isSetting = (this.request.timeoutMs ?? timeoutMs) === this.replica!.limits.timeoutMs;
    const limit = isSetting ? `setting ${timeoutSetting}` : "the call's own limit";
    const missing = this.upstream === undefined ? 'was not there' : 'did not answer';
    const what = this.isQueued ? 'had no free slot' : missing;
    const error = timedOut(server, what, waited, limit, timeoutMs);
    // That a client is in a hurry says nothing of the server.
    const isItsFault = waited >= Math.min(this.replica!.limits.timeoutMs, HURRY_MS);
    if (this.upstream !== undefined) this.replica!.callFailed(error, isItsFault);
    this.withdraw('The call took too long.');
    this.fail(error);
  }

  private withdraw(reason: string | undefined): void {
    if (this.isQueued) this.connection!.slots.leave(this);
    this.upstream?.cancel(this.upstreamId, reason);
  }

  private finish(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.stopClock();
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

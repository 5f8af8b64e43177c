import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import type { AnswerId } from '../protocol/answer.ts';
import type { Message } from '../protocol/envelope.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Era } from '../protocol/versions.ts';
import type { Connection } from './connection.ts';
import type { Errand, Group } from './group.ts';
import type { Able, Replica } from './replica.ts';
import type { Waiting } from './slots.ts';
import type { Call, Client, Letter, Upstream } from './upstream.ts';

/** A request that some replica of a group is to answer. */
export interface Parcel extends Errand, Letter {
  /** What the client can do; a connection of its own is opened with it. */
  able: Able;
  /** Whether it does no harm to do it twice. */
  isRepeatable: boolean;
  /** How long the client wants to wait. */
  timeoutMs: number | undefined;
}

/** Whoever wants the answer. Exactly one of `answered` and `failed` comes, unless it is cancelled. */
export interface Recipient {
  answered(chunks: Chunks, at: AnswerId): void;
  failed(error: SwitchboardError): void;
  progressed(message: Message): void;
  /** The server will go on with its answer later. */
  paused(retryMs: number): void;
  /** Until when that server waited for this client, `now` where it still does: that time was not the server's. */
  waitedUntil(upstream: Upstream, now: number): number;
}

/**
 * One request on its way: pick a replica, wait until it is there and has a slot, send, await. Where it certainly was
 * not executed, or does no harm twice, another replica is tried; a request that was sent is otherwise never sent again.
 */
export class Delivery implements Call, Waiting {
  readonly client: Client;
  readonly recipient: Recipient;
  private readonly group: Group;
  private readonly parcel: Parcel;
  private replica: Replica | undefined;
  private connection: Connection | undefined;
  private upstream: Upstream | undefined;
  private upstreamId = -1;
  private sends = 0;
  private waits = 0;
  private isQueued = false;
  private holdsSlot = false;
  private isOver = false;
  /** Where it is not tried again. */
  private tried: Set<Replica> | undefined;
  /** Where it did not get through although the replica seemed to be there: that happens when a server forgets us. */
  private unreached: Set<Replica> | undefined;
  private lastError: SwitchboardError | undefined;
  private clock: NodeJS.Timeout | undefined;
  private startedAt = 0;
  private lastSign = 0;

  constructor(group: Group, parcel: Parcel, recipient: Recipient) {
    this.group = group;
    this.parcel = parcel;
    this.client = parcel.client;
    this.recipient = recipient;
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

  /** The replica that was tried last. */
  get lastReplica(): Replica | undefined {
    return this.replica;
  }

  begin(): void {
    const replica = this.group.pick(this.parcel, this.tried);
    if (replica === undefined) {
      this.giveUp();
      return;
    }
    this.replica = replica;
    this.connection = replica.connectionFor(this.client, this.parcel.able);
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

  displaced(): void {
    this.isQueued = false;
    this.foundNoPlace();
  }

  answered(chunks: Chunks, at: AnswerId): void {
    if (!this.finish()) return;
    this.replica!.callSucceeded();
    this.recipient.answered(chunks, at);
  }

  failed(error: SwitchboardError, sent: boolean): void {
    if (this.isOver) return;
    this.upstream = undefined;
    this.releaseSlot();
    if (sent) this.executedMaybe(error);
    else this.notExecuted(error);
  }

  progressed(message: Message): void {
    if (this.isOver) return;
    this.lastSign = performance.now();
    this.recipient.progressed(message);
  }

  paused(retryMs: number): void {
    if (!this.isOver) this.recipient.paused(retryMs);
  }

  /** Takes a slot, or waits for one, whether the server is there already or has to be started. */
  private lineUp(connection: Connection): void {
    // Where the client says how long, that is all the time there is; else starting has a limit of its own.
    const isThere = connection.current !== undefined;
    if (isThere || this.parcel.timeoutMs !== undefined) this.startClock();
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
    } else if (this.canMoveOn()) {
      this.moveOn();
    } else {
      this.awaitOpen(connection);
    }
  }

  /** Until it is there, or another one that can do the same. */
  private awaitOpen(connection: Connection): void {
    const wait = ++this.waits;
    const isCurrent = () => !this.isOver && this.waits === wait && this.upstream === undefined;
    const opening = connection.open();
    const others = this.group.openings(this.parcel, this.tried);
    const first = others.length === 0 ? opening : Promise.any([opening, ...others]);
    first.then(
      () => isCurrent() && this.opened(connection),
      (error: SwitchboardError | AggregateError) =>
        isCurrent() && this.notOpened(error instanceof AggregateError ? error.errors[0] : error),
    );
  }

  private opened(connection: Connection): void {
    if (connection.current === undefined) this.moveOn();
    else if (this.isQueued) this.startClock();
    else this.proceed(connection);
  }

  private notOpened(error: SwitchboardError): void {
    this.lastError = error;
    this.leaveLine();
    this.tryElsewhere();
  }

  /** Where a client has an instance of its own, it waits for that one. */
  private canMoveOn(): boolean {
    const replica = this.replica!;
    return !replica.isolates && this.group.hasOther(this.parcel, new Set(this.tried).add(replica));
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
    const { server } = this.replica!;
    this.lastError = new SwitchboardError(
      'server_busy',
      `Server "${server}" is busy: too many calls wait for it already (setting queueLimit).`,
      { data: { server } },
    );
    this.tryElsewhere();
  }

  private send(upstream: Upstream): void {
    let lines = '';
    try {
      if (upstream.takesLines) lines = this.replica!.offer?.parameterLines(this.parcel) ?? '';
    } catch (error) {
      this.fail(asSwitchboardError(error));
      return;
    }
    const send = ++this.sends;
    this.upstream = upstream;
    this.replica!.used();
    const id = upstream.relay(this.parcel, this, lines);
    // It may have failed, and been sent elsewhere, before the call above came back.
    if (send === this.sends) this.upstreamId = id;
  }

  private notExecuted(error: SwitchboardError): void {
    const replica = this.replica!;
    this.lastError = named(error, replica.server);
    this.unreached ??= new Set();
    if (this.unreached.has(replica)) {
      this.tryElsewhere();
    } else {
      this.unreached.add(replica);
      this.begin();
    }
  }

  private executedMaybe(failure: SwitchboardError): void {
    const error = named(failure, this.replica!.server);
    this.replica!.callFailed(error, true);
    this.lastError = error;
    this.tried ??= new Set();
    this.tried.add(this.replica!);
    if (this.parcel.isRepeatable && this.group.hasOther(this.parcel, this.tried)) this.begin();
    else this.fail(isCutOff(error) ? maybeExecuted(error) : error);
  }

  private tryElsewhere(): void {
    this.tried ??= new Set();
    this.tried.add(this.replica!);
    this.begin();
  }

  /** No replica is left to try. */
  private giveUp(): void {
    this.replica?.callRefused();
    this.fail(this.group.unavailable(this.parcel, this.lastError));
  }

  private fail(error: SwitchboardError): void {
    if (this.finish()) this.recipient.failed(error);
  }

  private startClock(): void {
    if (this.clock !== undefined) return;
    this.startedAt = performance.now();
    this.lastSign = this.startedAt;
    const { timeoutMs } = this.limits();
    this.clock = setTimeout(() => this.timeIsUp(), timeoutMs);
  }

  private limits(): { timeoutMs: number; maxTimeoutMs: number } {
    const { timeoutMs, maxTimeoutMs } = this.replica!.limits;
    return { timeoutMs: Math.min(this.parcel.timeoutMs ?? timeoutMs, maxTimeoutMs), maxTimeoutMs };
  }

  private timeIsUp(): void {
    const now = performance.now();
    const { timeoutMs, maxTimeoutMs } = this.limits();
    if (this.upstream !== undefined) {
      this.lastSign = Math.max(this.lastSign, this.recipient.waitedUntil(this.upstream, now));
    }
    const until = Math.min(this.lastSign + timeoutMs, this.startedAt + maxTimeoutMs);
    if (until > now) {
      this.clock = setTimeout(() => this.timeIsUp(), until - now);
      return;
    }
    const { server, timeoutSetting } = this.replica!;
    const waited = Math.round(now - this.startedAt);
    const limit = this.parcel.timeoutMs === undefined ? `setting ${timeoutSetting}` : "the call's own limit";
    const what = this.isQueued
      ? 'had no free slot'
      : this.upstream === undefined
        ? 'was not there'
        : 'did not answer';
    const error = new SwitchboardError(
      'call_timeout',
      `Server "${server}" ${what} within ${waited} ms (${limit}).`,
      { data: { server, timeoutMs } },
    );
    // That a client is in a hurry says nothing of the server.
    const isItsFault = waited >= this.replica!.limits.timeoutMs;
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
    clearTimeout(this.clock);
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

/** Whether the server went away without a word on the call. */
function isCutOff({ code, data }: SwitchboardError): boolean {
  return code === 'server_unavailable' && data.status === undefined;
}

/** Whoever made the call has to know, before making it again. */
function maybeExecuted(error: SwitchboardError): SwitchboardError {
  const message = `${error.message} (the call may have been carried out, and is not sent again)`;
  return new SwitchboardError(error.code, message, { cause: error, data: error.data });
}

/** Every error says which server it is about. */
function named(error: SwitchboardError, server: string): SwitchboardError {
  if (error.data.server === server) return error;
  return new SwitchboardError(error.code, `Server "${server}": ${error.message}`, {
    cause: error,
    data: { ...error.data, server },
  });
}

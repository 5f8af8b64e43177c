import { uriPrefix } from '../catalog/uris.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { type AnswerId, withAnswerId } from '../protocol/answer.ts';
import { bytesAt, type Message, readMessage } from '../protocol/envelope.ts';
import {
  byteLength,
  type Chunks,
  errorMessage,
  join,
  type RequestId,
  toRpcError,
} from '../protocol/jsonrpc.ts';
import { mayHoldUris, resultUriSpans } from '../protocol/result-uris.ts';
import { splice } from '../protocol/splice.ts';
import { saysToolError } from '../protocol/tool-error.ts';
import { Delivery, type Parcel, type Recipient } from '../upstreams/delivery.ts';
import type { Group } from '../upstreams/group.ts';
import type { Call, Upstream } from '../upstreams/upstream.ts';
import { hold } from './hold.ts';
import type { CallRecorder, FinishedCall } from './records.ts';
import { refuse, refuseSecondUse } from './refuse.ts';
import { resolve, type Target, unknownTarget } from './resolve.ts';
import type { Scope } from './scope.ts';
import type { Incoming, InFlight, Outlet, Session } from './session.ts';
import { begunTask, progressOf, Tasks } from './tasks.ts';
import { readWishes } from './wishes.ts';

/** One client request on its way through one server: resolve, hand over to a group, map the answer back. */
export function call(scope: Scope, incoming: Incoming, recorder: CallRecorder): void {
  const target = resolve(scope.catalog, incoming.message);
  if (target !== undefined) forward(scope, incoming, target, recorder);
  else callOnceDiscovered(scope, incoming, recorder);
}

/** The first call may come before anybody has asked for a list. */
function callOnceDiscovered(scope: Scope, incoming: Incoming, recorder: CallRecorder): void {
  const forwardOrRefuse = () => {
    const target = resolve(scope.catalog, incoming.message);
    if (target !== undefined) forward(scope, incoming, target, recorder);
    else refuse(incoming, unknownTarget(incoming.message, scope));
  };
  const discovered = scope.discovered();
  if (discovered === undefined) forwardOrRefuse();
  else hold(incoming, discovered, forwardOrRefuse);
}

function forward(
  scope: Scope,
  incoming: Incoming,
  { route, kind, edits }: Target,
  recorder: CallRecorder,
): void {
  const { session, message, prefer } = incoming;
  const group = scope.group(route.group);
  if (group === undefined) {
    refuse(incoming, unknownTarget(message, scope));
    return;
  }
  const { own, server, among } = route;
  const { labels, timeoutMs } = readWishes(message, prefer);
  deliver(incoming, recorder, group, route.place, {
    client: session,
    kind,
    own,
    server,
    among,
    labels,
    only: undefined,
    message,
    edits,
    capabilities: session.facts.capabilities,
    // A task that was begun twice would be done twice, whatever the tool says of itself.
    isRepeatable: route.isRepeatable && message.task === undefined,
    timeoutMs,
  });
}

/** What is asked of a task goes to the one that does it. */
export function callTask(incoming: Incoming, recorder: CallRecorder): void {
  const { session, message, prefer } = incoming;
  const { group, replica, place } = (session.tasks ?? noTasks).named(message);
  const { timeoutMs } = readWishes(message, prefer);
  deliver(incoming, recorder, group, place, {
    client: session,
    kind: 'tools',
    own: message.taskId?.value ?? '',
    server: undefined,
    among: undefined,
    labels: undefined,
    only: replica,
    message,
    edits: [],
    capabilities: session.facts.capabilities,
    isRepeatable: false,
    // A result is waited for as long as the task takes.
    timeoutMs: timeoutMs ?? (message.method === 'tasks/result' ? Number.POSITIVE_INFINITY : undefined),
  });
}

const noTasks = new Tasks();

function deliver(
  incoming: Incoming,
  recorder: CallRecorder,
  group: Group,
  place: string,
  parcel: Parcel,
): void {
  const clientCall = new ClientCall(incoming, recorder, group, place, parcel.own);
  if (!incoming.session.begin(clientCall)) {
    refuseSecondUse(incoming);
    return;
  }
  clientCall.deliver(new Delivery(group, parcel, clientCall));
}

/** The client's request that a server's call is made for, where it is one. */
export function clientCallOf(call: Call | undefined): ClientCall | undefined {
  const recipient = call instanceof Delivery ? call.recipient : undefined;
  return recipient instanceof ClientCall ? recipient : undefined;
}

class ClientCall implements Recipient, InFlight {
  readonly client: Session;
  readonly outlet: Outlet;
  readonly group: Group;
  /** The name under which the client asked for it; URIs in the answer are under the same one. */
  private readonly place: string;
  private readonly message: Message;
  private readonly own: string;
  private readonly recorder: CallRecorder;
  private readonly startedAt = performance.now();
  private delivery: Delivery | undefined;
  private over = false;

  constructor(
    { session, message, outlet }: Incoming,
    recorder: CallRecorder,
    group: Group,
    place: string,
    own: string,
  ) {
    this.client = session;
    this.message = message;
    this.outlet = outlet;
    this.recorder = recorder;
    this.group = group;
    this.place = place;
    this.own = own;
  }

  get id(): RequestId {
    return this.message.id!;
  }

  deliver(delivery: Delivery): void {
    this.delivery = delivery;
    delivery.begin();
  }

  cancel(reason: string | undefined): void {
    if (!this.finish()) return;
    this.delivery?.cancel(reason);
    this.outlet.end();
    this.record('cancelled', undefined, undefined, false);
  }

  answered(chunks: Chunks, at: AnswerId): void {
    if (!this.finish()) return;
    try {
      if (this.message.task !== undefined && !at.isError) this.noteTask(chunks);
      this.outlet.answer(this.mapped(chunks, at));
      this.record('answered', undefined, chunks, at.isError);
    } catch (thrown) {
      const { message } = asSwitchboardError(thrown);
      const what = `Server "${this.group.name}" answered wrongly: ${message}`;
      const error = new SwitchboardError('server_protocol_error', what);
      this.tell(error);
      this.record('failed', error, chunks, false);
    }
  }

  failed(error: SwitchboardError): void {
    if (!this.finish()) return;
    this.tell(error);
    this.record('failed', error, undefined, false);
  }

  progressed(message: Message): void {
    if (this.over || this.message.wantedProgress === undefined) return;
    const token = bytesAt(this.message.bytes, this.message.wantedProgress);
    this.outlet.event([splice(message.bytes, [{ ...message.progressToken!, bytes: token }])]);
  }

  paused(retryMs: number): void {
    if (!this.over) this.outlet.pause(retryMs);
  }

  waitedUntil(upstream: Upstream, now: number): number {
    return this.client.wasAwaitedUntil(upstream, now);
  }

  private get idBytes(): Buffer {
    return bytesAt(this.message.bytes, this.message.idSpan!);
  }

  private finish(): boolean {
    if (this.over) return false;
    this.over = true;
    return this.client.finish(this);
  }

  private record(
    outcome: FinishedCall['outcome'],
    error: SwitchboardError | undefined,
    answer: Chunks | undefined,
    isRpcError: boolean,
  ): void {
    const { message, group, recorder } = this;
    const replica = this.delivery?.lastReplica;
    const keeps = recorder.keepsPayloads(group.project);
    recorder.record({
      project: group.project,
      client: this.client.facts.name,
      method: message.method,
      server: replica?.server ?? group.name,
      replica: replica?.number,
      own: this.own,
      outcome,
      isRpcError,
      isToolError: answer !== undefined && message.method === 'tools/call' && saysToolError(answer),
      error,
      durationMs: performance.now() - this.startedAt,
      inputBytes: message.bytes.length,
      outputBytes: answer === undefined ? 0 : byteLength(answer),
      request: keeps ? message : undefined,
      // What a server says of its error is short, and not known otherwise.
      answer: keeps || isRpcError ? answer : undefined,
    });
  }

  private noteTask(answer: Chunks): void {
    const id = begunTask(answer);
    const carrier = this.delivery?.carrier;
    if (id === undefined || carrier === undefined) return;
    const { replica, upstream, id: token } = carrier;
    const { client: session, group, place } = this;
    session.tasks ??= new Tasks();
    const progress = progressOf(this.message, upstream, token);
    session.tasks.add({ id, group, replica, place, progress });
  }

  private tell(error: SwitchboardError): void {
    this.outlet.answer([errorMessage(this.idBytes, toRpcError(error))]);
  }

  /** The answer under the client's id, with the server's URIs made public. */
  private mapped(answered: Chunks, found: AnswerId): Buffer[] {
    const isCertain = !this.outlet.isBatch && !this.client.awaitsOthersThan(this.group);
    const { chunks, at } = isCertain ? { chunks: answered, at: found } : verified(answered, found);
    const { method } = this.message;
    if (at.isError || !mayHoldUris(method, chunks)) return withAnswerId(chunks, at, this.idBytes);
    const answer = join(withAnswerId(chunks, at, this.idBytes));
    const prefix = Buffer.from(uriPrefix(this.place));
    const edits = resultUriSpans(method, answer).map(({ start }) => ({
      start: start + 1,
      end: start + 1,
      bytes: prefix,
    }));
    return edits.length === 0 ? [answer] : [splice(answer, edits)];
  }
}

/**
 * A client that awaits several servers could be made to take one server's answer for another's by an answer with
 * two ids, and a batch by two answers in one. Then, and only then, answers are read whole, and left one reading.
 */
function verified(chunks: Chunks, at: AnswerId): { chunks: Chunks; at: AnswerId } {
  const { bytes, id, idSpan } = readMessage(join(chunks));
  if (id !== at.id) throw new SwitchboardError('server_protocol_error', 'the answer has two ids');
  return { chunks: [bytes], at: { id: at.id, isError: at.isError, chunk: 0, ...idSpan! } };
}

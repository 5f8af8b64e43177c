import { asSwitchboardError, SwitchboardError, stopping } from '../errors.ts';
import { bytesAt, type Message } from '../protocol/envelope.ts';
import {
  byteLength,
  type Chunks,
  errorMessage,
  METHOD_NOT_FOUND,
  type RequestId,
  resultMessage,
  toRpcError,
} from '../protocol/jsonrpc.ts';
import { withMembers } from '../protocol/members.ts';
import type { ResponseId } from '../protocol/response.ts';
import { splice } from '../protocol/splice.ts';
import { saysToolError } from '../protocol/tool-error.ts';
import { Delivery } from '../upstreams/delivery.ts';
import type { Group } from '../upstreams/group.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { PendingRequest } from '../upstreams/request.ts';
import type { ResponseHandler, RoutedRequest } from '../upstreams/routed-request.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import type { CallContext, CallDesk } from './call-context.ts';
import { type Caller, discardResponder, type Incoming, type InFlight, type Responder } from './caller.ts';
import type { Holdable } from './crossing/held-calls.ts';
import { inputIn, inputMembers, inputRequired, mayAskInput, type WantedInput } from './crossing/input.ts';
import { Questions } from './crossing/input-requests.ts';
import { ClientRound } from './crossing/input-rounds.ts';
import { isReadInSlices, mapLargeAnswer } from './large-responses.ts';
import { Session } from './legacy/caller.ts';
import { clientGone, decline, mayAsk } from './legacy/server-requests.ts';
import { begunTask, progressOf, Tasks } from './legacy/tasks.ts';
import { bindingOf, type RequestStates } from './modern/request-state.ts';
import type { FinishedCall } from './records.ts';
import { type AnsweredCall, type MappedAnswer, mapAnswer } from './response-mapping.ts';

/** A server that never has enough of asking must not keep a call for ever. */
const MAX_ROUNDS = 32;
const ROUND_PAUSE_MS = 100;

/** The client's request that a server's call is made for, where it is one. */
export function clientCallOf(call: PendingRequest | undefined): ClientCall | undefined {
  const handler = call instanceof Delivery ? call.handler : undefined;
  return handler instanceof ClientCall ? handler : undefined;
}

/**
 * One request of a client that a server is to answer. Where client and server are of different eras, what the server asks in
 * between is asked in the client's way: by a request (legacy), or by an answer to which the client comes back (modern).
 */
export class ClientCall implements ResponseHandler, InFlight, Holdable, AnsweredCall {
  readonly group: Group;
  readonly context: CallContext;
  private readonly request: RoutedRequest;
  private readonly desk: CallDesk;
  private readonly startedAt = performance.now();
  /** Whether nothing that the client has at servers outlives this call. */
  private readonly isPassing: boolean;
  /** These three change when the client comes back with what it was asked for. */
  caller: Caller;
  responder: Responder;
  private message: Message;
  private delivery: Delivery | undefined;
  private over = false;
  /** Of a client of the modern era: what it was asked, whether it is away, and what came meanwhile. */
  private questions: Questions | undefined;
  isHeld = false;
  private parked: (() => void) | undefined;
  /** Of a client of the legacy era. */
  private round: ClientRound | undefined;
  private rounds = 0;
  private pause: NodeJS.Timeout | undefined;

  constructor(
    { caller, message, responder }: Incoming,
    desk: CallDesk,
    context: CallContext,
    request: RoutedRequest,
  ) {
    this.caller = caller;
    this.message = message;
    this.responder = responder;
    this.desk = desk;
    this.group = context.group;
    this.context = context;
    this.request = request;
    this.isPassing = caller.era === 'modern' && caller.identity === caller;
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
    this.giveUp(reason);
    this.record('cancelled', undefined, undefined, false);
    this.responder.end();
  }

  fail(error: SwitchboardError): void {
    if (!this.finish()) return;
    this.giveUp('Switchboard is stopping.');
    this.tellError(error);
    this.record('failed', error, undefined, false);
  }

  get awaitsClient(): boolean {
    const { caller, questions } = this;
    if (this.round !== undefined || (questions !== undefined && !questions.isEmpty)) return true;
    return caller instanceof Session && caller.isAskedFor(this);
  }

  onResponse(chunks: Chunks, at: ResponseId): void {
    if (this.over) return;
    if (this.isHeld) {
      this.parked = () => this.onResponse(chunks, at);
      return;
    }
    try {
      if (isReadInSlices(chunks, at, this)) {
        void this.answeredLarge(chunks, at);
        return;
      }
      if (this.asksFirst(chunks, at) || !this.finish()) return;
      if (this.message.task !== undefined && this.caller.era === 'legacy' && !at.isError)
        this.noteTask(chunks);
      this.tell(mapAnswer(chunks, at, this), chunks, at);
    } catch (thrown) {
      this.answeredWrongly(thrown, chunks);
    }
  }

  /** It stays one that can be cancelled until its answer goes out. */
  private async answeredLarge(chunks: Chunks, at: ResponseId): Promise<void> {
    const { message } = this;
    const mapped = await mapLargeAnswer(chunks, at, this).catch((thrown: unknown) => ({ thrown }));
    if (this.over) return;
    // The client was asked for something meanwhile: who gets the answer, and under which id, is not what it was.
    if (this.isHeld || this.message !== message) {
      this.onResponse(chunks, at);
      return;
    }
    try {
      if ('thrown' in mapped) throw mapped.thrown;
      mapped.check();
      if (this.finish()) this.tell(mapped, chunks, at);
    } catch (thrown) {
      this.answeredWrongly(thrown, chunks);
    }
  }

  private answeredWrongly(thrown: unknown, chunks: Chunks): void {
    const { message } = asSwitchboardError(thrown);
    const what = `Server "${this.group.name}" answered wrongly: ${message}`;
    const error = new SwitchboardError('server_protocol_error', what);
    if (!this.over) this.finish();
    this.tellError(error);
    this.record('failed', error, chunks, false);
  }

  onError(error: SwitchboardError): void {
    if (this.over) return;
    if (this.isHeld) {
      this.parked = () => this.onError(error);
      return;
    }
    if (!this.finish()) return;
    this.tellError(error);
    this.record('failed', error, undefined, false);
  }

  onProgress(message: Message): void {
    if (this.over || this.message.wantedProgress === undefined) return;
    const token = bytesAt(this.message.bytes, this.message.wantedProgress);
    this.responder.event([splice(message.bytes, [{ ...message.progressToken!, bytes: token }])]);
  }

  onPaused(retryMs: number): void {
    if (!this.over) this.responder.pause(retryMs);
  }

  waitedUntil(upstream: Upstream, now: number): number {
    if (this.caller instanceof Session) return this.caller.wasAwaitedUntil(upstream, now);
    return this.questions?.waitedUntil(now) ?? 0;
  }

  /** A server of the legacy era asks the client, which is one of the modern era. */
  ask(message: Message, upstream: Upstream): void {
    if (!mayAskInput(this.message.method)) {
      const text = `A client cannot be asked for anything during ${this.message.method}.`;
      upstream.answerError(bytesAt(message.bytes, message.idSpan!), {
        code: METHOD_NOT_FOUND,
        message: text,
      });
      return;
    }
    if (!mayAsk(message, upstream, this.caller.facts.capabilities)) return;
    this.questions ??= new Questions();
    try {
      this.questions.add(message, upstream);
    } catch (error) {
      decline(upstream, bytesAt(message.bytes, message.idSpan!), asSwitchboardError(error));
      return;
    }
    this.desk.held.asks(this);
    // What is asked at the same time is asked in one answer.
    setImmediate(() => this.orFail(() => this.askBack()));
  }

  withdraw(upstream: Upstream, serverId: Buffer): void {
    this.questions?.withdraw(upstream, serverId);
  }

  resume({ caller, message, responder }: Incoming): void {
    this.isHeld = false;
    this.caller = caller;
    this.message = message;
    this.responder = responder;
    if (!caller.begin(this)) {
      this.abandon();
      return;
    }
    this.orFail(() => {
      this.questions?.answer(message);
      const { parked } = this;
      this.parked = undefined;
      if (parked === undefined) this.askBack();
      else parked();
    });
  }

  abandon(): void {
    this.isHeld = false;
    if (this.over) return;
    this.over = true;
    this.giveUp('The client did not come back.');
    this.record('cancelled', undefined, undefined, false);
  }

  private askBack(): void {
    const { questions, desk, responder } = this;
    if (this.over || this.isHeld || questions === undefined || questions.isEmpty) return;
    if (desk.held.isClosed) {
      questions.declineAll(stopping());
      return;
    }
    if (desk.held.isFull) {
      const why = 'Too many calls wait for their clients already (setting maxHeldCalls).';
      questions.declineAll(new SwitchboardError('client_unavailable', why));
      return;
    }
    const binding = this.binding();
    const state = desk.states.issue({ kind: 'held', call: desk.held.hold(this) }, binding);
    this.caller.finish(this);
    this.isHeld = true;
    this.responder = discardResponder;
    responder.respond(resultMessage(this.idBytes, inputRequired(questions.inputRequests(), state)));
  }

  /** Whether the answer of a server of the modern era is a question, for a client of the legacy era. */
  private asksFirst(chunks: Chunks, at: ResponseId): boolean {
    const { caller } = this;
    if (!(caller instanceof Session) || at.isError || this.serverEra === 'legacy') return false;
    const input = inputIn(chunks, at);
    if (input === undefined) return false;
    if (++this.rounds > MAX_ROUNDS) throw new Error(`it asked more than ${MAX_ROUNDS} times`);
    const { replica } = this.delivery!.carrier!;
    const goOn = (responses: object) => this.orFail(() => this.sendAgain(replica, responses, input));
    const { requests } = input;
    if (Object.keys(requests).length === 0) {
      this.pause = setTimeout(() => goOn({}), ROUND_PAUSE_MS);
      return true;
    }
    this.orFail(() => {
      if (this.desk.held.isClosed) throw stopping();
      this.round = new ClientRound(replica.server, caller, this.responder, requests, this.desk.inputWaitMs, {
        done: goOn,
        failed: (error) => this.onError(error),
      });
    });
    return true;
  }

  private orFail(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.delivery?.cancel('The call has failed.');
      this.questions?.declineAll(clientGone());
      this.onError(asSwitchboardError(error));
    }
  }

  private sendAgain(replica: Replica, responses: object, { requestState }: WantedInput): void {
    this.round = undefined;
    if (this.over) return;
    const { bytes, params } = this.message;
    const input = withMembers(bytes, params!.start, inputMembers(responses, requestState));
    const { edits } = this.request;
    const request = { ...this.request, only: replica, isRepeatable: false, edits: [...edits, input] };
    this.deliver(new Delivery(this.group, request, this));
  }

  get idBytes(): Buffer {
    return bytesAt(this.message.bytes, this.message.idSpan!);
  }

  get method(): string {
    return this.message.method;
  }

  get replica(): Replica | undefined {
    return this.delivery?.replica;
  }

  get serverEra(): Caller['era'] {
    return this.delivery?.era ?? this.caller.era;
  }

  get isVerified(): boolean {
    return this.responder.isBatch || this.caller.awaitsOthersThan(this.group);
  }

  get states(): RequestStates {
    return this.desk.states;
  }

  binding(): string {
    return bindingOf(this.caller.name, this.context.project, this.message);
  }

  private finish(): boolean {
    if (this.over) return false;
    this.over = true;
    this.settle();
    return this.caller.finish(this);
  }

  /** Nobody waits for it any more. */
  private giveUp(reason: string | undefined): void {
    this.settle();
    this.delivery?.cancel(reason);
    this.round?.cancel();
    this.questions?.declineAll(clientGone());
  }

  private settle(): void {
    clearTimeout(this.pause);
    if (this.questions !== undefined) this.desk.held.over(this);
    // After whatever is still to be told of its call.
    if (this.isPassing && this.group.isolates) setImmediate(() => this.group.release(this.request.client));
  }

  private record(
    outcome: FinishedCall['outcome'],
    error: SwitchboardError | undefined,
    answer: Chunks | undefined,
    isRpcError: boolean,
  ): void {
    const { message, group } = this;
    const { recorder } = this.desk;
    const replica = this.delivery?.replica;
    const keeps = recorder.keepsPayloads(group.project);
    recorder.record({
      project: group.project,
      client: this.caller.facts.name,
      method: message.method,
      server: replica?.server ?? group.name,
      replica: replica?.number,
      own: this.request.own,
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
      run: this.context.run,
    });
  }

  private noteTask(answer: Chunks): void {
    const id = begunTask(answer);
    const carrier = this.delivery?.carrier;
    if (id === undefined || carrier === undefined) return;
    const { replica, upstream, id: token } = carrier;
    const { caller, group } = this;
    caller.tasks ??= new Tasks();
    const progress = progressOf(this.message, upstream, token);
    caller.tasks.add({ id, group, replica, place: this.context.place, progress });
  }

  private tellError(error: SwitchboardError): void {
    const rpc = toRpcError(error, this.caller.era);
    this.responder.respond([errorMessage(this.idBytes, rpc)], rpc.code);
  }

  private tell({ message, errorCode }: MappedAnswer, chunks: Chunks, { isError }: ResponseId): void {
    this.responder.respond(message, errorCode);
    this.record('answered', undefined, chunks, isError);
  }
}

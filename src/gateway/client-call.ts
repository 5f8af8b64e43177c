import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import type { AccessControl } from '../identity/access-control.ts';
import type { Limiter, Ticket } from '../identity/limiter.ts';
import { type Chunks, errorMessage, type RequestId, resultMessage, toRpcError } from '../protocol/jsonrpc.ts';
import { withMembers } from '../protocol/members.ts';
import { bytesAt, idBytes, type Message } from '../protocol/message.ts';
import type { ResponseId } from '../protocol/response.ts';
import { splice } from '../protocol/splice.ts';
import { Delivery } from '../upstreams/delivery.ts';
import type { Group } from '../upstreams/group.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { ResponseHandler, RoutedRequest } from '../upstreams/routed-request.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import type { Caller, Incoming } from './caller.ts';
import { type HeldCalls, HeldInput } from './crossing/held-calls.ts';
import { inputMembers, readRequiredInput } from './crossing/input.ts';
import { InputRounds } from './crossing/input-rounds.ts';
import { mapLargeResponse } from './large-responses.ts';
import { clientGone, type ServerRequests } from './legacy/server-requests.ts';
import { bindingOf, type RequestStates } from './modern/request-state.ts';
import type { TaskIds } from './modern/tasks.ts';
import { type CallRecorder, recordCall } from './records.ts';
import { discardResponder, type InFlight, type Responder } from './responder.ts';
import {
  type CallContext,
  isReadInSlices,
  type MappedResponse,
  mapResponse,
  type ResponseContext,
} from './response-mapping.ts';

export interface CallServices {
  access: AccessControl;
  limiter: Limiter;
  taskIds: TaskIds;
  recorder: CallRecorder;
  held: HeldCalls;
  states: RequestStates;
  inputWaitMs: number;
}

/**
 * One request of a client, until it has its response. If client and server are of different eras, the server's requests are
 * translated: to requests (`InputRounds`, legacy clients) or to a response that the client returns to (`HeldInput`, modern clients).
 */
export class ClientCall implements ResponseHandler, InFlight, ResponseContext {
  readonly group: Group;
  readonly context: CallContext;
  readonly request: RoutedRequest;
  readonly startedAt = performance.now();
  readonly services: CallServices;
  /** Whether servers keep no state for the client after this call. */
  private readonly isTransient: boolean;
  private readonly ticket: Ticket | undefined;
  /** These three change when a modern client returns with input. */
  caller: Caller;
  responder: Responder;
  message: Message;
  delivery: Delivery | undefined;
  isOver = false;
  private input: HeldInput | undefined;
  private rounds: InputRounds | undefined;

  constructor(
    { caller, message, responder }: Incoming,
    services: CallServices,
    context: CallContext,
    request: RoutedRequest,
    ticket: Ticket | undefined,
  ) {
    this.ticket = ticket;
    this.caller = caller;
    this.message = message;
    this.responder = responder;
    this.services = services;
    this.group = context.group;
    this.context = context;
    this.request = request;
    this.isTransient = caller.era === 'modern' && caller.identity === caller;
  }

  deliver(delivery: Delivery): void {
    this.delivery = delivery;
    delivery.begin();
  }

  cancel(reason: string | undefined): void {
    if (!this.finish()) return;
    this.stop(reason);
    recordCall(this.services.recorder, this, 'cancelled');
    this.responder.end();
  }

  fail(error: SwitchboardError): void {
    if (!this.finish()) return;
    this.stop('Switchboard is stopping.');
    this.respondError(error);
  }

  onResponse(chunks: Chunks, at: ResponseId): void {
    if (this.isOver) return;
    if (this.isHeld) {
      this.input!.defer(() => this.onResponse(chunks, at));
      return;
    }
    try {
      if (isReadInSlices(chunks, at, this)) {
        void this.respondLarge(chunks, at);
        return;
      }
      const { caller } = this;
      if (this.serverEra === 'modern' && caller.serverRequests !== undefined && !at.isError)
        if (this.requiresInput(chunks, at, caller.serverRequests)) return;
      if (!this.finish()) return;
      if (this.message.task !== undefined && !at.isError) caller.onTaskBegun?.(chunks, this);
      this.respond(mapResponse(chunks, at, this), chunks, at);
    } catch (thrown) {
      this.respondMalformed(thrown, chunks);
    }
  }

  onError(error: SwitchboardError): void {
    if (this.isOver) return;
    if (this.isHeld) this.input!.defer(() => this.onError(error));
    else if (this.finish()) this.respondError(error);
  }

  onProgress(message: Message): void {
    if (this.isOver || this.message.wantedProgress === undefined) return;
    const token = bytesAt(this.message.bytes, this.message.wantedProgress);
    this.responder.event([splice(message.bytes, [{ ...message.progressToken!, bytes: token }])]);
  }

  onPaused(retryMs: number): void {
    if (!this.isOver) this.responder.pause(retryMs);
  }

  onServerRequest(message: Message, upstream: Upstream): void {
    const { serverRequests } = this.caller;
    if (serverRequests !== undefined) {
      serverRequests.forward(message, upstream, this);
      return;
    }
    this.input ??= new HeldInput(this, this.services);
    this.input.request(message, upstream);
  }

  waitedUntil(upstream: Upstream, now: number): number {
    const { serverRequests } = this.caller;
    if (serverRequests !== undefined) return serverRequests.waitedUntil(upstream, now);
    return this.input?.waitedUntil(now) ?? 0;
  }

  get awaitsClient(): boolean {
    if (this.rounds?.isPending || this.input?.isPending) return true;
    return this.caller.serverRequests?.isPendingFor(this) ?? false;
  }

  suspend(result: Buffer): void {
    const { responder } = this;
    this.caller.finish(this);
    this.responder = discardResponder;
    responder.respond(resultMessage(idBytes(this.message), result));
  }

  resume({ caller, message, responder }: Incoming): void {
    const input = this.input!;
    input.isHeld = false;
    this.caller = caller;
    this.message = message;
    this.responder = responder;
    if (caller.begin(this)) this.attempt(() => input.resume(message));
    else this.abandon();
  }

  abandon(): void {
    this.input!.isHeld = false;
    if (this.isOver) return;
    this.isOver = true;
    this.stop('The client did not return.');
    recordCall(this.services.recorder, this, 'cancelled');
  }

  /** True if the server needs input from the legacy client first; the call continues when the client has responded. */
  private requiresInput(chunks: Chunks, at: ResponseId, client: ServerRequests): boolean {
    const input = readRequiredInput(chunks, at);
    if (input === undefined) return false;
    this.rounds ??= new InputRounds(this, client, this.services);
    const { rounds } = this;
    rounds.countRound();
    this.attempt(() => rounds.begin(this.delivery!.carrier!.replica, input));
    return true;
  }

  sendAgain(replica: Replica, responses: object, requestState: unknown): void {
    if (this.isOver) return;
    this.attempt(() => {
      const { bytes, params } = this.message;
      const input = withMembers(bytes, params!.start, inputMembers(responses, requestState));
      const edits = [...this.request.edits, input];
      const request = { ...this.request, only: replica, isRepeatable: false, edits };
      this.deliver(new Delivery(this.group, request, this));
    });
  }

  attempt(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.delivery?.cancel('The call has failed.');
      this.input?.declineAll(clientGone());
      this.onError(asSwitchboardError(error));
    }
  }

  get id(): RequestId {
    return this.message.id!;
  }

  get isHeld(): boolean {
    return this.input?.isHeld ?? false;
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

  binding(): string {
    return bindingOf(this.caller.name, this.context.project, this.message);
  }

  private finish(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.settle();
    return this.caller.finish(this);
  }

  private stop(reason: string | undefined): void {
    this.settle();
    this.delivery?.cancel(reason);
    this.rounds?.cancel();
    this.input?.declineAll(clientGone());
  }

  private settle(): void {
    this.ticket?.release();
    this.input?.close();
    // Messages of the call may still follow.
    if (this.isTransient && this.group.isolates) setImmediate(() => this.group.release(this.request.client));
  }

  private async respondLarge(chunks: Chunks, at: ResponseId): Promise<void> {
    const { message } = this;
    const mapped = await mapLargeResponse(chunks, at, this).catch((thrown: unknown) => ({ thrown }));
    if (this.isOver) return;
    // The client has left or returned meanwhile, so the response goes elsewhere, or under another id.
    if (this.isHeld || this.message !== message) {
      this.onResponse(chunks, at);
      return;
    }
    try {
      if ('thrown' in mapped) throw mapped.thrown;
      mapped.check();
      if (this.finish()) this.respond(mapped, chunks, at);
    } catch (thrown) {
      this.respondMalformed(thrown, chunks);
    }
  }

  private respond({ message, errorCode }: MappedResponse, chunks: Chunks, { isError }: ResponseId): void {
    this.responder.respond(message, errorCode);
    recordCall(this.services.recorder, this, 'answered', undefined, chunks, isError);
  }

  private respondMalformed(thrown: unknown, chunks: Chunks): void {
    const { message } = asSwitchboardError(thrown);
    const what = `Server "${this.group.name}" sent an invalid response: ${message}`;
    this.finish();
    this.respondError(new SwitchboardError('server_protocol_error', what), chunks);
  }

  private respondError(error: SwitchboardError, chunks?: Chunks): void {
    const rpc = toRpcError(error, this.caller.era);
    this.responder.respond([errorMessage(idBytes(this.message), rpc)], rpc.code);
    recordCall(this.services.recorder, this, 'failed', error, chunks);
  }
}

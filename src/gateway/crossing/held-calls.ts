import { randomUUID } from 'node:crypto';
import { asSwitchboardError, SwitchboardError, stopping } from '../../errors.ts';
import { METHOD_NOT_FOUND } from '../../protocol/jsonrpc.ts';
import { idBytes, type Message } from '../../protocol/message.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import type { Incoming } from '../caller.ts';
import { checkSupported, decline } from '../legacy/server-requests.ts';
import { type RequestStates, wrongState } from '../modern/request-state.ts';
import { inputRequired, mayRequireInput } from './input.ts';
import { InputRequests } from './input-requests.ts';

/** A call of a modern client whose legacy server waits for input until the client returns with it. */
interface HeldCall {
  readonly message: Message;
  readonly caller: Incoming['caller'];
  readonly isOver: boolean;
  /** What a request state is bound to. */
  binding(): string;
  /** Responds to the client's request with this result, while the call goes on. */
  suspend(result: Buffer): void;
  /** The client is back. */
  resume(incoming: Incoming): void;
  /** The client did not return in time, or Switchboard stops. */
  abandon(): void;
  /** Runs an action that fails the call if it throws. */
  attempt(action: () => void): void;
}

/** The calls that wait for their clients: a limited number, for a limited time. */
export class HeldCalls {
  private readonly limit: number;
  private readonly waitMs: number;
  private readonly byId = new Map<string, { call: HeldCall; deadline: NodeJS.Timeout }>();
  /** Of the calls that are held, or about to be. */
  private readonly inputs = new Set<HeldInput>();

  isClosed = false;

  constructor(limit: number, waitMs: number) {
    this.limit = limit;
    this.waitMs = waitMs;
  }

  get isFull(): boolean {
    return this.byId.size >= this.limit;
  }

  /** Holds a call until its client returns with the id that this gives. */
  hold(call: HeldCall): string {
    const id = randomUUID();
    const deadline = setTimeout(() => {
      this.byId.delete(id);
      call.abandon();
    }, this.waitMs).unref();
    this.byId.set(id, { call, deadline });
    return id;
  }

  /** The call with this id, which is then held no more. */
  take(id: string): HeldCall {
    const held = this.byId.get(id);
    if (held === undefined) throw wrongState('was used already, or its call is over');
    clearTimeout(held.deadline);
    this.byId.delete(id);
    return held.call;
  }

  add(input: HeldInput): void {
    this.inputs.add(input);
  }

  remove(input: HeldInput): void {
    this.inputs.delete(input);
  }

  /** A server cancels one of its requests. */
  withdraw(upstream: Upstream, serverId: Buffer): void {
    for (const { requests } of this.inputs) requests.withdraw(upstream, serverId);
  }

  /** Abandons the calls that wait, and holds no more. */
  close(): void {
    this.isClosed = true;
    for (const { call, deadline } of this.byId.values()) {
      clearTimeout(deadline);
      call.abandon();
    }
    this.byId.clear();
  }
}

/** The input that one call needs from its client. The call is held while the client is away. */
export class HeldInput {
  private readonly call: HeldCall;
  private readonly held: HeldCalls;
  private readonly states: RequestStates;
  readonly requests = new InputRequests();
  /** Whether the client is away. */
  isHeld = false;
  /** What happened to the call while the client was away. */
  private deferred: (() => void) | undefined;

  constructor(call: HeldCall, { held, states }: { held: HeldCalls; states: RequestStates }) {
    this.call = call;
    this.held = held;
    this.states = states;
  }

  /** A server requests input. Requests that arrive together go into one response. */
  request(message: Message, upstream: Upstream): void {
    const { caller, message: called } = this.call;
    if (!mayRequireInput(called.method)) {
      const text = `A client cannot be asked for input during ${called.method}.`;
      upstream.answerError(idBytes(message), { code: METHOD_NOT_FOUND, message: text });
      return;
    }
    if (!checkSupported(message, upstream, caller.facts.capabilities)) return;
    try {
      this.requests.add(message, upstream);
    } catch (error) {
      decline(upstream, idBytes(message), asSwitchboardError(error));
      return;
    }
    this.held.add(this);
    setImmediate(() => this.call.attempt(() => this.suspend()));
  }

  defer(action: () => void): void {
    this.deferred = action;
  }

  /** The client is back, with this message. */
  resume(message: Message): void {
    this.requests.respond(message);
    const { deferred } = this;
    this.deferred = undefined;
    if (deferred === undefined) this.suspend();
    else deferred();
  }

  /** The call is over. */
  close(): void {
    this.held.remove(this);
  }

  private suspend(): void {
    const { call, held, requests } = this;
    if (call.isOver || this.isHeld || requests.isEmpty) return;
    if (held.isClosed) {
      requests.declineAll(stopping());
      return;
    }
    if (held.isFull) {
      const why = 'Too many calls wait for their clients (setting maxHeldCalls).';
      requests.declineAll(new SwitchboardError('client_unavailable', why));
      return;
    }
    const binding = call.binding();
    const state = this.states.issue({ kind: 'held', call: held.hold(call) }, binding);
    this.isHeld = true;
    call.suspend(inputRequired(requests.inputRequests(), state));
  }
}

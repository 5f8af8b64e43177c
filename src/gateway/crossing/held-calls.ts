import { randomUUID } from 'node:crypto';
import { asSwitchboardError, SwitchboardError, stopping } from '../../errors.ts';
import type { Principal } from '../../identity/principal.ts';
import { isObject } from '../../json.ts';
import { bytesOf, METHOD_NOT_FOUND } from '../../protocol/jsonrpc.ts';
import { parseLossless } from '../../protocol/lossless.ts';
import { bytesAt, idBytes, type Message } from '../../protocol/message.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import type { Incoming } from '../caller.ts';
import { checkSupported, decline, tooManyPending } from '../legacy/server-requests.ts';
import { type RequestStates, wrongState } from '../modern/request-state.ts';
import { inputRequired, mayRequireInput } from './input.ts';

/** A call of a modern client whose legacy server waits for input until the client returns with it. */
interface HeldCall {
  readonly message: Message;
  readonly caller: Incoming['caller'];
  readonly isOver: boolean;
  binding(): string;
  /** Responds to the client's request, while the call stays open. */
  suspend(result: Buffer): void;
  resume(incoming: Incoming): void;
  /** Called when the client does not return in time, or Switchboard stops. */
  abandon(): void;
  /** Runs an action; if it throws, the call fails. */
  attempt(action: () => void): void;
}

/** Calls that wait for their clients, limited in number and time. */
export class HeldCalls {
  private readonly limit: number;
  private readonly waitMs: number;
  private readonly byId = new Map<string, { call: HeldCall; deadline: NodeJS.Timeout }>();
  /** Of calls that are held or about to be. */
  private readonly inputs = new Set<HeldInput>();

  isClosed = false;

  constructor(limit: number, waitMs: number) {
    this.limit = limit;
    this.waitMs = waitMs;
  }

  get isFull(): boolean {
    return this.byId.size >= this.limit;
  }

  /** Returns the id that the client has to return with. */
  hold(call: HeldCall): string {
    const id = randomUUID();
    const deadline = setTimeout(() => {
      this.byId.delete(id);
      call.abandon();
    }, this.waitMs).unref();
    this.byId.set(id, { call, deadline });
    return id;
  }

  /** Ends the hold. */
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

  withdraw(upstream: Upstream, serverId: Buffer): void {
    for (const input of this.inputs) input.withdraw(upstream, serverId);
  }

  endPrincipal(principal: Principal): void {
    this.abandon(({ caller }) => caller.principal === principal);
  }

  /** Abandons the held calls, and accepts no more. */
  close(): void {
    this.isClosed = true;
    this.abandon(() => true);
  }

  private abandon(isMeant: (call: HeldCall) => boolean): void {
    for (const [id, { call, deadline }] of this.byId) {
      if (!isMeant(call)) continue;
      clearTimeout(deadline);
      this.byId.delete(id);
      call.abandon();
    }
  }
}

interface InputRequest {
  upstream: Upstream;
  serverId: Buffer;
  method: string;
  params: unknown;
}

/** All of them go into one response. */
const MAX_PENDING = 100;
/** A single request may be as large as any message. */
const MAX_PENDING_BYTES = 64 * 1024 * 1024;

/** The input that legacy servers request during one call of a modern client, which gets it as `inputRequests` of a response. */
export class HeldInput {
  private readonly call: HeldCall;
  private readonly services: { held: HeldCalls; states: RequestStates };
  private readonly pending = new Map<string, InputRequest>();
  private pendingBytes = 0;
  private count = 0;
  private settledAt = 0;
  isHeld = false;
  /** Runs when the client returns. */
  private deferred: (() => void) | undefined;

  constructor(call: HeldCall, services: { held: HeldCalls; states: RequestStates }) {
    this.call = call;
    this.services = services;
  }

  get isPending(): boolean {
    return this.pending.size > 0;
  }

  /** `now` while a server waits for the client. */
  waitedUntil(now: number): number {
    return this.isPending ? now : this.settledAt;
  }

  /** Requests that arrive together go into one response. */
  request(message: Message, upstream: Upstream): void {
    const { caller, message: called } = this.call;
    if (!mayRequireInput(called.method)) {
      const text = `A client cannot be asked for input during ${called.method}.`;
      upstream.respondError(idBytes(message), { code: METHOD_NOT_FOUND, message: text });
      return;
    }
    if (!checkSupported(message, upstream, caller.facts.capabilities)) return;
    try {
      this.add(message, upstream);
    } catch (error) {
      decline(upstream, idBytes(message), asSwitchboardError(error));
      return;
    }
    this.services.held.add(this);
    setImmediate(() => this.call.attempt(() => this.suspend()));
  }

  add(message: Message, upstream: Upstream): void {
    const { bytes, method, params } = message;
    const isFull = this.pending.size >= MAX_PENDING || this.pendingBytes + bytes.length > MAX_PENDING_BYTES;
    if (isFull) throw tooManyPending();
    this.pendingBytes += bytes.length;
    const parsed = params && withoutProgress(parseLossless(bytesAt(bytes, params).toString()));
    const serverId = Buffer.from(idBytes(message));
    this.pending.set(`question-${++this.count}`, { upstream, serverId, method, params: parsed });
  }

  inputRequests(): object {
    const entries = [...this.pending].map(([key, { method, params }]) => [
      key,
      params === undefined ? { method } : { method, params },
    ]);
    return Object.fromEntries(entries);
  }

  defer(action: () => void): void {
    this.deferred = action;
  }

  resume(message: Message): void {
    this.respond(message);
    const { deferred } = this;
    this.deferred = undefined;
    if (deferred === undefined) this.suspend();
    else deferred();
  }

  withdraw(upstream: Upstream, serverId: Buffer): void {
    for (const [key, request] of this.pending) {
      if (request.upstream !== upstream || !request.serverId.equals(serverId)) continue;
      this.pending.delete(key);
      this.settledAt = performance.now();
    }
  }

  declineAll(error: SwitchboardError): void {
    for (const { upstream, serverId } of this.pending.values()) decline(upstream, serverId, error);
    this.pending.clear();
    this.pendingBytes = 0;
  }

  close(): void {
    this.services.held.remove(this);
  }

  /** Passes the client's input to the servers; requests without input stay pending. */
  private respond({ bytes, inputResponses }: Message): void {
    const given = inputResponses && parseLossless(bytesAt(bytes, inputResponses).toString());
    if (!isObject(given)) return;
    for (const [key, { upstream, serverId }] of this.pending) {
      const response = Object.hasOwn(given, key) ? given[key] : undefined;
      if (!isObject(response)) continue;
      this.pending.delete(key);
      this.settledAt = performance.now();
      upstream.respond(serverId, bytesOf(response));
    }
    if (!this.isPending) this.pendingBytes = 0;
  }

  private suspend(): void {
    const { call } = this;
    const { held, states } = this.services;
    if (call.isOver || this.isHeld || !this.isPending) return;
    if (held.isClosed) {
      this.declineAll(stopping());
      return;
    }
    if (held.isFull) {
      const why = 'Too many calls wait for their clients (setting maxHeldCalls).';
      this.declineAll(new SwitchboardError('client_unavailable', why));
      return;
    }
    const binding = call.binding();
    const state = states.issue({ kind: 'held', call: held.hold(call) }, binding);
    this.isHeld = true;
    call.suspend(inputRequired(this.inputRequests(), state));
  }
}

/** Modern clients cannot report progress on a server's request. */
function withoutProgress(params: unknown): unknown {
  if (!isObject(params) || !isObject(params._meta)) return params;
  const { _meta, ...rest } = params;
  const { progressToken, ...meta } = params._meta;
  return Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta };
}

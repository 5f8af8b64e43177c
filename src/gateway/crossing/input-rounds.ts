import { randomUUID } from 'node:crypto';
import { asSwitchboardError, SwitchboardError, stopping } from '../../errors.ts';
import { asObject, inWords } from '../../json.ts';
import { parseBounded } from '../../protocol/bounded-parse.ts';
import { requestMessage } from '../../protocol/jsonrpc.ts';
import { parseLossless } from '../../protocol/lossless.ts';
import { bytesAt, type Message } from '../../protocol/message.ts';
import type { Replica } from '../../upstreams/replica.ts';
import { clientGone, type ServerRequests } from '../legacy/server-requests.ts';
import type { Responder } from '../responder.ts';
import { missingCapability, type RequiredInput } from './input.ts';

interface RoundsCall {
  readonly responder: Responder;
  sendAgain(replica: Replica, responses: object, requestState: unknown): void;
  onError(error: SwitchboardError): void;
}

interface RoundsServices {
  held: { readonly isClosed: boolean };
  inputWaitMs: number;
}

/** Limits a server that requires input again and again. */
const MAX_ROUNDS = 32;
/** How long to wait before the call is repeated if the server required no particular input. */
const PAUSE_MS = 100;

/** Turns the input that a modern server requires into requests to a legacy client, round by round. */
export class InputRounds {
  private readonly call: RoundsCall;
  private readonly client: ServerRequests;
  private readonly services: RoundsServices;
  private count = 0;
  private readonly pending = new Map<number, string>();
  private responses: [key: string, response: unknown][] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(call: RoundsCall, client: ServerRequests, services: RoundsServices) {
    this.call = call;
    this.client = client;
    this.services = services;
  }

  get isPending(): boolean {
    return this.pending.size > 0;
  }

  countRound(): void {
    if (++this.count > MAX_ROUNDS) throw new Error(`it required input more than ${MAX_ROUNDS} times`);
  }

  /** Throws if the client cannot be asked. */
  begin(replica: Replica, { requests, requestState }: RequiredInput): void {
    const proceed = () => this.call.sendAgain(replica, Object.fromEntries(this.responses), requestState);
    const entries = Object.entries(requests);
    this.responses = [];
    if (entries.length === 0) {
      this.timer = setTimeout(proceed, PAUSE_MS);
      return;
    }
    const { held, inputWaitMs } = this.services;
    // The client cannot respond any more.
    if (held.isClosed) throw stopping();
    this.client.checkRoom(undefined, entries.length);
    const { server } = replica;
    const supported = entries.map(([key, request]) => this.checked(server, key, asObject(request)));
    this.timer = setTimeout(() => {
      const why = `The client did not answer within ${inputWaitMs} ms what server "${server}" requested.`;
      this.fail(new SwitchboardError('call_timeout', why, { data: { server } }));
    }, inputWaitMs).unref();
    for (const { key, method, params } of supported) {
      const id = this.client.register({
        destination: this.call.responder,
        source: undefined,
        call: undefined,
        onResponse: (message) => this.onResponse(id, message, proceed),
        onDisconnect: () => this.fail(clientGone()),
      });
      this.pending.set(id, key);
      this.call.responder.event([requestMessage(id, method, withElicitationId(method, params))]);
    }
  }

  cancel(): void {
    clearTimeout(this.timer);
    for (const id of this.pending.keys()) this.client.withdraw(id, 'The call that needed it is over.');
    this.pending.clear();
  }

  private checked(server: string, key: string, { method: name, params }: Record<string, unknown>) {
    const method = inWords(name);
    const missing = missingCapability(this.client.capabilities, method, params);
    if (missing === undefined) return { key, method, params };
    const why = `Server "${server}" requires ${method}, but the client does not support ${missing}.`;
    throw new SwitchboardError('client_unavailable', why, { data: { server } });
  }

  private onResponse(id: number, message: Message, proceed: () => void): void {
    try {
      this.take(id, message);
    } catch (error) {
      this.fail(asSwitchboardError(error));
      return;
    }
    if (this.isPending) return;
    clearTimeout(this.timer);
    proceed();
  }

  private take(id: number, { kind, bytes, result }: Message): void {
    const key = this.pending.get(id)!;
    this.pending.delete(id);
    if (kind !== 'error' && result !== undefined) {
      this.responses.push([key, parseLossless(bytesAt(bytes, result).toString())]);
      return;
    }
    const { error } = asObject(parseBounded(bytes.toString())) as { error?: { message?: unknown } };
    const why = `The client responded with an error to a server's request: ${inWords(error?.message)}`;
    throw new SwitchboardError('client_unavailable', why);
  }

  private fail(error: SwitchboardError): void {
    this.cancel();
    this.call.onError(error);
  }
}

/** The legacy era requires an id for an elicitation by URL. */
function withElicitationId(method: string, params: unknown): unknown {
  const { mode, elicitationId } = asObject(params);
  if (method !== 'elicitation/create' || mode !== 'url' || elicitationId !== undefined) return params;
  return { ...asObject(params), elicitationId: randomUUID() };
}

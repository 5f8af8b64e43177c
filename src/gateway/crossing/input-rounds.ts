import { randomUUID } from 'node:crypto';
import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import { parseBounded } from '../../protocol/bounded-parse.ts';
import { bytesAt, type Message } from '../../protocol/envelope.ts';
import { requestMessage } from '../../protocol/jsonrpc.ts';
import { parseLossless } from '../../protocol/lossless.ts';
import { asObject, inWords } from '../../protocol/objects.ts';
import type { Responder } from '../caller.ts';
import { lackedCapability } from '../capabilities.ts';
import type { Session } from '../legacy/caller.ts';
import { clientGone, withdrawAsk } from '../legacy/server-requests.ts';

interface RoundEvents {
  /** The client has answered everything: the answers, by the keys of the questions. */
  done(responses: Record<string, unknown>): void;
  failed(error: SwitchboardError): void;
}

/** What a server of the modern era asks for by its answer, asked of a client of the legacy era by requests. */
export class ClientRound {
  private readonly session: Session;
  private readonly events: RoundEvents;
  private readonly missing = new Map<number, string>();
  private readonly responses = new Map<string, unknown>();
  private readonly deadline: NodeJS.Timeout;

  constructor(
    server: string,
    session: Session,
    responder: Responder,
    requests: Record<string, unknown>,
    waitMs: number,
    events: RoundEvents,
  ) {
    this.session = session;
    this.events = events;
    session.checkRoomFor(undefined, Object.keys(requests).length);
    const questions = Object.entries(requests).map(([key, request]) => {
      const { method: asked, params } = asObject(request);
      const method = inWords(asked);
      const lacked = lackedCapability(session.facts.capabilities, method, params);
      if (lacked === undefined) return { key, method, params };
      const why = `Server "${server}" asks for ${method}, and the client does not support ${lacked}.`;
      throw new SwitchboardError('client_unavailable', why, { data: { server } });
    });
    this.deadline = setTimeout(() => {
      const why = `The client did not answer within ${waitMs} ms what server "${server}" asked.`;
      this.fail(new SwitchboardError('call_timeout', why, { data: { server } }));
    }, waitMs).unref();
    for (const { key, method, params } of questions) {
      const id = session.ask({
        place: responder,
        source: undefined,
        call: undefined,
        answered: (message) => this.answered(id, message),
        declined: () => this.fail(clientGone()),
      });
      this.missing.set(id, key);
      responder.event([requestMessage(id, method, identified(method, params))]);
    }
  }

  /** Nobody wants to know any more. */
  cancel(): void {
    clearTimeout(this.deadline);
    for (const id of this.missing.keys()) withdrawAsk(this.session, id, 'The call that asked is over.');
    this.missing.clear();
  }

  private answered(id: number, message: Message): void {
    try {
      this.take(id, message);
    } catch (error) {
      this.fail(asSwitchboardError(error));
    }
  }

  private take(id: number, { kind, bytes, result }: Message): void {
    const key = this.missing.get(id);
    if (key === undefined) return;
    this.missing.delete(id);
    if (kind === 'error' || result === undefined) {
      const { error } = asObject(parseBounded(bytes.toString())) as { error?: { message?: unknown } };
      const why = `The client could not answer what was asked of it: ${inWords(error?.message)}`;
      this.fail(new SwitchboardError('client_unavailable', why));
      return;
    }
    this.responses.set(key, parseLossless(bytesAt(bytes, result).toString()));
    if (this.missing.size > 0) return;
    clearTimeout(this.deadline);
    this.events.done(Object.fromEntries(this.responses));
  }

  private fail(error: SwitchboardError): void {
    this.cancel();
    this.events.failed(error);
  }
}

/** In the legacy era a client that is sent to an address gets an id for that, too. */
function identified(method: string, params: unknown): unknown {
  const { mode, elicitationId } = asObject(params);
  if (method !== 'elicitation/create' || mode !== 'url' || elicitationId !== undefined) return params;
  return { ...asObject(params), elicitationId: randomUUID() };
}

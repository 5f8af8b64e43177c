import { uriPrefix } from '../catalog/uris.ts';
import { SwitchboardError } from '../errors.ts';
import { readMessage } from '../protocol/envelope.ts';
import type { Span } from '../protocol/json-scanner.ts';
import { type Chunks, join } from '../protocol/jsonrpc.ts';
import { readModernResult, resultStart, stringAt } from '../protocol/modern-result.ts';
import { type ResponseId, responseIdOf, withResponseId } from '../protocol/response.ts';
import { mayHoldUris, resultUriSpans } from '../protocol/result-uris.ts';
import { type Edit, splice } from '../protocol/splice.ts';
import type { Era } from '../protocol/versions.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { CallContext } from './call-context.ts';
import type { Caller } from './caller.ts';
import { type Answer, errorOf, toLegacy, toModern, withResultType } from './crossing/responses.ts';
import { type LedCall, leadBack, mayLeadBack } from './modern/affinity.ts';

/** The call that an answer belongs to. */
export interface AnsweredCall extends LedCall {
  readonly context: CallContext;
  readonly caller: Caller;
  /** Who has answered. */
  readonly replica: Replica | undefined;
  readonly serverEra: Era;
  /** The client's own id of its request. */
  readonly idBytes: Buffer;
  /** Whether the answer has to be exactly one, and that of this server. */
  readonly isVerified: boolean;
}

export interface MappedAnswer {
  message: Buffer[];
  /** Where it is an error of which a client of the modern era is told by the status too. */
  errorCode: number | undefined;
}

/** A server's answer as its client gets it: in its era, under its id, with the server's URIs made public. */
export function mapAnswer(chunks: Chunks, at: ResponseId, call: AnsweredCall): MappedAnswer {
  // Asked of what the server wrote: it is looked at least where it is in the usual order.
  const mayHold = !at.isError && mayHoldUris(call.method, chunks);
  const answer = inClientsEra(call.isVerified ? verified(chunks, at) : { chunks, at }, call);
  const isTold = answer.at.isError && call.caller.era === 'modern';
  return {
    message: withPublicNames(answer, call, mayHold),
    errorCode: isTold ? errorOf(answer.chunks).code : undefined,
  };
}

function inClientsEra(answer: Answer, { caller, serverEra, method }: AnsweredCall): Answer {
  if (caller.era === 'legacy') return serverEra === 'legacy' ? answer : toLegacy(method, answer);
  return serverEra === 'modern' ? withResultType(answer) : toModern(method, answer, caller.facts);
}

function withPublicNames({ chunks, at }: Answer, call: AnsweredCall, mayHold: boolean): Buffer[] {
  const { method, idBytes } = call;
  const leadsTo = at.isError ? undefined : leadsBackTo(chunks, call);
  if (at.isError || (leadsTo === undefined && !mayHold)) {
    return withResponseId(chunks, at, idBytes);
  }
  const answer = join(withResponseId(chunks, at, idBytes));
  const edits = resultUriSpans(method, answer).map((span) => publicUri(answer, span, call));
  if (leadsTo !== undefined) {
    const start = resultStart(answer);
    edits.push(...leadBack(answer, { start, ...readModernResult(answer, start) }, leadsTo, call));
  }
  return edits.length === 0 ? [answer] : [splice(answer, edits)];
}

/** The replica that a client of the modern era has to be led back to. */
export function leadsBackTo(chunks: Chunks, call: AnsweredCall): Replica | undefined {
  const { caller, serverEra, replica, context, method } = call;
  if (caller.era === 'legacy' || serverEra === 'legacy' || replica === undefined) return undefined;
  return mayLeadBack(context.group, replica, method, chunks) ? replica : undefined;
}

/** The edit that makes the URI that stands there, with its quotes, public. */
export function publicUri(answer: Buffer, span: Span, { method, context }: AnsweredCall): Edit {
  const at = span.start + 1;
  const own = answer.toString('utf8', at, span.end - 1);
  // What is read is that of who was asked for it, whoever else may list it. All else may be a link to others.
  const place =
    method === 'resources/read'
      ? context.place
      : linkPlace(context, own.includes('\\') ? stringAt(answer, span)! : own);
  return { start: at, end: at, bytes: Buffer.from(uriPrefix(place, own)) };
}

function linkPlace({ catalog, place }: CallContext, uri: string): string {
  return catalog === undefined ? place : catalog.placeOfLink(uri, place);
}

/**
 * A client that awaits several servers could be made to take one server's answer for another's by an answer with
 * two ids, and a batch by two answers in one. Then, and only then, answers are read whole, and left one reading.
 */
function verified(chunks: Chunks, at: ResponseId): Answer {
  const message = readMessage(join(chunks));
  if (message.id !== at.id) throw new SwitchboardError('server_protocol_error', 'the answer has two ids');
  return { chunks: [message.bytes], at: responseIdOf(message) };
}

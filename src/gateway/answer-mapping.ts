import { uriPrefix } from '../catalog/uris.ts';
import { SwitchboardError } from '../errors.ts';
import { type AnswerId, withAnswerId } from '../protocol/answer.ts';
import { readMessage } from '../protocol/envelope.ts';
import { type Chunks, join } from '../protocol/jsonrpc.ts';
import { mayHoldUris, resultUriSpans } from '../protocol/result-uris.ts';
import { type Edit, splice } from '../protocol/splice.ts';
import type { Era } from '../protocol/versions.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Caller } from './caller.ts';
import type { CallContext } from './client-call.ts';
import { type Answer, errorOf, toLegacy, toModern, withResultType } from './eras/answers.ts';
import { leadBack, mayLeadBack } from './eras/modern-edits.ts';
import type { RequestStates } from './eras/request-state.ts';

/** What an answer is mapped with. */
export interface AnswerMapping {
  method: string;
  context: CallContext;
  caller: Caller;
  /** Who has answered. */
  replica: Replica | undefined;
  serverEra: Era;
  /** The client's own id of its request. */
  id: Buffer;
  /** Whether the answer has to be exactly one, and that of this server. */
  isVerified: boolean;
  states: RequestStates;
  binding(): string;
}

/** A server's answer as its client gets it: in its era, under its id, with the server's URIs made public. */
export function mapAnswer(
  chunks: Chunks,
  at: AnswerId,
  mapping: AnswerMapping,
): { message: Buffer[]; errorCode: number | undefined } {
  const answer = inClientsEra(mapping.isVerified ? verified(chunks, at) : { chunks, at }, mapping);
  const isTold = answer.at.isError && mapping.caller.era === 'modern';
  return {
    message: withPublicNames(answer, mapping),
    errorCode: isTold ? errorOf(answer.chunks).code : undefined,
  };
}

function inClientsEra(answer: Answer, { caller, serverEra, method }: AnswerMapping): Answer {
  if (caller.era === 'legacy') return serverEra === 'legacy' ? answer : toLegacy(method, answer);
  return serverEra === 'modern'
    ? withResultType(answer)
    : toModern(method, answer, caller.facts.capabilities);
}

function withPublicNames({ chunks, at }: Answer, mapping: AnswerMapping): Buffer[] {
  const { method, id, context, replica, states } = mapping;
  const leadsTo = at.isError ? undefined : leadsBackTo(chunks, mapping);
  if (at.isError || (leadsTo === undefined && !mayHoldUris(method, chunks))) {
    return withAnswerId(chunks, at, id);
  }
  const answer = join(withAnswerId(chunks, at, id));
  const edits = publicUris(answer, method, context.place);
  if (replica !== undefined && leadsTo !== undefined) {
    const { group, groupPlace } = context;
    edits.push(...leadBack(answer, group, groupPlace, replica, states, mapping.binding));
  }
  return edits.length === 0 ? [answer] : [splice(answer, edits)];
}

/** The replica that a client of the modern era has to be led back to. */
function leadsBackTo(chunks: Chunks, mapping: AnswerMapping): Replica | undefined {
  const { caller, serverEra, replica, context, method } = mapping;
  if (caller.era === 'legacy' || serverEra === 'legacy' || replica === undefined) return undefined;
  return mayLeadBack(context.group, replica, method, chunks) ? replica : undefined;
}

function publicUris(answer: Buffer, method: string, place: string): Edit[] {
  return resultUriSpans(method, answer).map(({ start, end }) => ({
    start: start + 1,
    end: start + 1,
    bytes: Buffer.from(uriPrefix(place, answer.toString('utf8', start + 1, end - 1))),
  }));
}

/**
 * A client that awaits several servers could be made to take one server's answer for another's by an answer with
 * two ids, and a batch by two answers in one. Then, and only then, answers are read whole, and left one reading.
 */
function verified(chunks: Chunks, at: AnswerId): Answer {
  const { bytes, id, idSpan, result } = readMessage(join(chunks));
  if (id !== at.id) throw new SwitchboardError('server_protocol_error', 'the answer has two ids');
  const payload = result?.start ?? 0;
  return { chunks: [bytes], at: { id: at.id, isError: at.isError, chunk: 0, ...idSpan!, payload } };
}

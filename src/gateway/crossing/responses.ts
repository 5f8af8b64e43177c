import { readMessage } from '../../protocol/envelope.ts';
import { bytesOf, type Chunks, join, type RpcError, resultMessage } from '../../protocol/jsonrpc.ts';
import { parseLossless } from '../../protocol/lossless.ts';
import { withoutMembers } from '../../protocol/members.ts';
import { endsOf, mentions } from '../../protocol/mentions.ts';
import { readModernResult } from '../../protocol/modern-result.ts';
import { findResponseId, type ResponseId, responseIdOf, withResultMembers } from '../../protocol/response.ts';
import { splice } from '../../protocol/splice.ts';
import type { Era } from '../../protocol/versions.ts';
import type { ClientFacts } from '../caller.ts';
import { lackedCapability } from '../capabilities.ts';
import { inputRequired, mayAskInput } from './input.ts';

export interface Answer {
  chunks: Chunks;
  at: ResponseId;
}

/** In the legacy era a resource that does not exist has an error code of its own. */
const RESOURCE_NOT_FOUND = -32002;
const INVALID_PARAMS = -32602;
const ADDRESSES_TO_VISIT = -32042;

const complete = Buffer.from('"resultType":"complete"');
/** Nothing is known of how long a resource of the legacy era stays as it is. */
const completeRead = Buffer.from('"resultType":"complete","ttlMs":0,"cacheScope":"private"');

/** The answer of a server of the legacy era, for a client of the modern era that can do so much. */
export function toModern(method: string, answer: Answer, facts: ClientFacts): Answer {
  const { chunks, at } = answer;
  if (at.isError) {
    return (
      visits(answer, method, facts) ??
      withErrorCode(answer, ({ code }) => (code === RESOURCE_NOT_FOUND ? INVALID_PARAMS : code))
    );
  }
  return withResultMembers(chunks, at, typeMembers(method, 'legacy'));
}

/** What a result of such a server lacks for a client of the modern era. */
export function typeMembers(method: string, serverEra: Era): Buffer {
  return serverEra === 'legacy' && method === 'resources/read' ? completeRead : complete;
}

/** A result without a type is complete; every result of ours has one. */
export function withResultType(answer: Answer): Answer {
  const { chunks, at } = answer;
  return at.isError || saysType(chunks) ? answer : withResultMembers(chunks, at, complete);
}

/** Servers write it first or last, so a large result is rarely looked at as a whole. */
function saysType(chunks: Chunks): boolean {
  return endsOf(chunks).some((end) => end.includes(TYPE_KEY)) || mentions(chunks, TYPE_KEY);
}

const TYPE_KEY = '"resultType"';

/** The answer of a server of the modern era, for a client of the legacy era. */
export function toLegacy(method: string, answer: Answer): Answer {
  const { chunks, at } = answer;
  if (at.isError) {
    // A resource that does not exist is told by what the error is about: a wrong parameter has the same code.
    return withErrorCode(answer, ({ code, data }) =>
      method === 'resources/read' && code === INVALID_PARAMS && namesUri(data) ? RESOURCE_NOT_FOUND : code,
    );
  }
  const bytes = join(chunks);
  const { additions } = readModernResult(bytes, at.payload);
  return additions.length === 0 ? answer : readAnswer(splice(bytes, withoutMembers(bytes, additions)));
}

/** In the legacy era a server says by an error that the client has to visit addresses first, and then to ask again. */
function visits({ chunks, at }: Answer, method: string, facts: ClientFacts): Answer | undefined {
  const { code, data } = errorOf(chunks);
  if (code !== ADDRESSES_TO_VISIT || !mayAskInput(method)) return undefined;
  const { elicitations } = (data ?? {}) as { elicitations?: unknown };
  if (!Array.isArray(elicitations) || elicitations.length === 0) return undefined;
  const isAble = elicitations.every(
    (params) => lackedCapability(facts.capabilities, 'elicitation/create', params) === undefined,
  );
  if (!isAble) return undefined;
  const requests = elicitations.map((params, index) => [
    `visit-${index + 1}`,
    { method: 'elicitation/create', params },
  ]);
  const result = inputRequired(Object.fromEntries(requests), undefined);
  return readAnswer(Buffer.concat(resultMessage(Buffer.from(String(at.id)), result)));
}

/** The error of an answer that is one. */
export function errorOf(chunks: Chunks): RpcError {
  const { error } = parseLossless(join(chunks).toString()) as { error?: Partial<RpcError> };
  return { code: 0, message: '', ...error };
}

function withErrorCode(answer: Answer, codeOf: (error: RpcError) => number): Answer {
  const error = errorOf(answer.chunks);
  const code = codeOf(error);
  if (code === error.code) return answer;
  return readAnswer(bytesOf({ jsonrpc: '2.0', id: answer.at.id, error: { ...error, code } }));
}

function namesUri(data: unknown): boolean {
  return typeof data === 'object' && data !== null && 'uri' in data;
}

/** Where in an answer that we have written the id stands. */
function readAnswer(bytes: Buffer): Answer {
  return { chunks: [bytes], at: findResponseId([bytes]) ?? responseIdOf(readMessage(bytes)) };
}

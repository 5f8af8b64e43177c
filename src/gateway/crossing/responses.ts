import { bytesOf, type Chunks, join, type RpcError, resultMessage } from '../../protocol/jsonrpc.ts';
import { parseLossless } from '../../protocol/lossless.ts';
import { withoutMembers } from '../../protocol/members.ts';
import { endsOf, mentions } from '../../protocol/mentions.ts';
import { readMessage } from '../../protocol/message-reader.ts';
import { readModernResult } from '../../protocol/modern-result.ts';
import { findResponseId, type ResponseId, responseIdOf, withResultMembers } from '../../protocol/response.ts';
import { splice } from '../../protocol/splice.ts';
import type { Era } from '../../protocol/versions.ts';
import type { ClientFacts } from '../caller.ts';
import { inputRequired, mayRequireInput, missingCapability } from './input.ts';

export interface RawResponse {
  chunks: Chunks;
  at: ResponseId;
}

/** The error code of the legacy era for a missing resource. */
const RESOURCE_NOT_FOUND = -32002;
const INVALID_PARAMS = -32602;
const URL_ELICITATION_REQUIRED = -32042;

const complete = Buffer.from('"resultType":"complete"');
/** A legacy server does not say how long a resource stays fresh. */
const completeRead = Buffer.from('"resultType":"complete","ttlMs":0,"cacheScope":"private"');

export function toModern(method: string, response: RawResponse, facts: ClientFacts): RawResponse {
  const { chunks, at } = response;
  if (at.isError) {
    return (
      urlElicitations(response, method, facts) ??
      withErrorCode(response, ({ code }) => (code === RESOURCE_NOT_FOUND ? INVALID_PARAMS : code))
    );
  }
  return withResultMembers(chunks, at, typeMembers(method, 'legacy'));
}

/** The members that a modern client needs in the result. */
export function typeMembers(method: string, serverEra: Era): Buffer {
  return serverEra === 'legacy' && method === 'resources/read' ? completeRead : complete;
}

/** Modern clients always get a type, and a result without one is complete. */
export function withResultType(response: RawResponse): RawResponse {
  const { chunks, at } = response;
  return at.isError || saysType(chunks) ? response : withResultMembers(chunks, at, complete);
}

/** Servers write the type first or last, so a large result is rarely searched as a whole. */
function saysType(chunks: Chunks): boolean {
  return endsOf(chunks).some((end) => end.includes(TYPE_KEY)) || mentions(chunks, TYPE_KEY);
}

const TYPE_KEY = '"resultType"';

export function toLegacy(method: string, response: RawResponse): RawResponse {
  const { chunks, at } = response;
  if (at.isError) {
    // A wrong parameter has the same code, but its error names no URI.
    return withErrorCode(response, ({ code, data }) =>
      method === 'resources/read' && code === INVALID_PARAMS && namesUri(data) ? RESOURCE_NOT_FOUND : code,
    );
  }
  const bytes = join(chunks);
  const { additions } = readModernResult(bytes, at.payload);
  return additions.length === 0 ? response : readResponse(splice(bytes, withoutMembers(bytes, additions)));
}

/** A legacy server uses an error to send the client to URLs before it repeats its request. */
function urlElicitations(
  { chunks, at }: RawResponse,
  method: string,
  facts: ClientFacts,
): RawResponse | undefined {
  const { code, data } = errorOf(chunks);
  if (code !== URL_ELICITATION_REQUIRED || !mayRequireInput(method)) return undefined;
  const { elicitations } = (data ?? {}) as { elicitations?: unknown };
  if (!Array.isArray(elicitations) || elicitations.length === 0) return undefined;
  const canOpenUrls = elicitations.every(
    (params) => missingCapability(facts.capabilities, 'elicitation/create', params) === undefined,
  );
  if (!canOpenUrls) return undefined;
  const requests = elicitations.map((params, index) => [
    `visit-${index + 1}`,
    { method: 'elicitation/create', params },
  ]);
  const result = inputRequired(Object.fromEntries(requests), undefined);
  return readResponse(Buffer.concat(resultMessage(Buffer.from(String(at.id)), result)));
}

export function errorOf(chunks: Chunks): RpcError {
  const { error } = parseLossless(join(chunks).toString()) as { error?: Partial<RpcError> };
  return { code: 0, message: '', ...error };
}

function withErrorCode(response: RawResponse, codeOf: (error: RpcError) => number): RawResponse {
  const error = errorOf(response.chunks);
  const code = codeOf(error);
  if (code === error.code) return response;
  return readResponse(bytesOf({ jsonrpc: '2.0', id: response.at.id, error: { ...error, code } }));
}

function namesUri(data: unknown): boolean {
  return typeof data === 'object' && data !== null && 'uri' in data;
}

function readResponse(bytes: Buffer): RawResponse {
  return { chunks: [bytes], at: findResponseId([bytes]) ?? responseIdOf(readMessage(bytes)) };
}

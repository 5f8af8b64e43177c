import type { Catalog } from '../catalog/catalog.ts';
import { uriPrefix } from '../catalog/uris.ts';
import { SwitchboardError } from '../errors.ts';
import type { Span } from '../protocol/json-scanner.ts';
import { byteLength, type Chunks, join } from '../protocol/jsonrpc.ts';
import { LARGE_BYTES } from '../protocol/large-walk.ts';
import { idBytes } from '../protocol/message.ts';
import { readMessage } from '../protocol/message-reader.ts';
import { readModernResult, resultStart, stringAt } from '../protocol/modern-result.ts';
import { type ResponseId, responseIdOf, withResponseId } from '../protocol/response.ts';
import { mayHoldUris, resultUriSpans } from '../protocol/result-uris.ts';
import { type Edit, splice } from '../protocol/splice.ts';
import type { Era } from '../protocol/versions.ts';
import type { Group } from '../upstreams/group.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Caller } from './caller.ts';
import { errorOf, type RawResponse, toLegacy, toModern, withResultType } from './crossing/responses.ts';
import { type AffinityContext, affinityEdits, needsAffinity } from './modern/affinity.ts';
import type { RunOfCall } from './records.ts';

export interface CallContext {
  group: Group;
  /** The server name that the client used; URIs in the response get the same one. */
  qualifier: string;
  /** The catalog at the time of the call, which resolves the owners of URIs in the response. */
  catalog: Catalog | undefined;
  project: string | undefined;
  run?: RunOfCall | undefined;
}

export interface ResponseContext extends AffinityContext {
  readonly context: CallContext;
  readonly caller: Caller;
  readonly replica: Replica | undefined;
  readonly serverEra: Era;
  /** Whether the response must be checked to be exactly one, from this server. */
  readonly isVerified: boolean;
}

export interface MappedResponse {
  message: Buffer[];
  /** Set if a modern client also gets it as an HTTP status. */
  errorCode: number | undefined;
}

/** Maps a server's response for its client: its era, its id, and public URIs. */
export function mapResponse(chunks: Chunks, at: ResponseId, call: ResponseContext): MappedResponse {
  // Checks the original, in whose usual order of members little has to be searched.
  const mayHold = !at.isError && mayHoldUris(call.message.method, chunks);
  const response = inClientsEra(call.isVerified ? verified(chunks, at) : { chunks, at }, call);
  const hasStatus = response.at.isError && call.caller.era === 'modern';
  return {
    message: withPublicNames(response, call, mayHold),
    errorCode: hasStatus ? errorOf(response.chunks).code : undefined,
  };
}

/** Whether a response is so large, and needs so much work, that it would block the event loop. */
export function isReadInSlices(chunks: Chunks, at: ResponseId, call: ResponseContext): boolean {
  if (byteLength(chunks) <= LARGE_BYTES) return false;
  if (call.isVerified) return true;
  if (at.isError) return false;
  if (call.caller.era === 'legacy' && call.serverEra === 'modern') return true;
  return mayHoldUris(call.message.method, chunks) || affineReplica(chunks, call) !== undefined;
}

function inClientsEra(response: RawResponse, { caller, serverEra, message }: ResponseContext): RawResponse {
  if (caller.era === 'legacy') return serverEra === 'legacy' ? response : toLegacy(message.method, response);
  return serverEra === 'modern' ? withResultType(response) : toModern(message.method, response, caller.facts);
}

function withPublicNames({ chunks, at }: RawResponse, call: ResponseContext, mayHold: boolean): Buffer[] {
  const { message } = call;
  const affine = at.isError ? undefined : affineReplica(chunks, call);
  if (at.isError || (affine === undefined && !mayHold)) return withResponseId(chunks, at, idBytes(message));
  const response = join(withResponseId(chunks, at, idBytes(message)));
  const edits = resultUriSpans(message.method, response).map((span) => publicUri(response, span, call));
  if (affine !== undefined) {
    const start = resultStart(response);
    edits.push(...affinityEdits(response, { start, ...readModernResult(response, start) }, affine, call));
  }
  return edits.length === 0 ? [response] : [splice(response, edits)];
}

export function affineReplica(chunks: Chunks, call: ResponseContext): Replica | undefined {
  const { caller, serverEra, replica, context, message } = call;
  if (caller.era === 'legacy' || serverEra === 'legacy' || replica === undefined) return undefined;
  return needsAffinity(context.group, replica, message.method, chunks) ? replica : undefined;
}

/** `span` includes the quotes of the URI. */
export function publicUri(response: Buffer, span: Span, { message, context }: ResponseContext): Edit {
  const at = span.start + 1;
  const own = response.toString('utf8', at, span.end - 1);
  // A resource that is read belongs to the server that was asked. Any other URI may link to another server's resource.
  const qualifier =
    message.method === 'resources/read'
      ? context.qualifier
      : linkQualifier(context, own.includes('\\') ? stringAt(response, span)! : own);
  return { start: at, end: at, bytes: Buffer.from(uriPrefix(qualifier, own)) };
}

function linkQualifier({ catalog, qualifier }: CallContext, uri: string): string {
  return catalog === undefined ? qualifier : catalog.linkQualifier(uri, qualifier);
}

/**
 * A response with two ids could pass for another server's, and two responses in one could slip into a batch. So if the client
 * awaits several servers, or sent a batch, responses are parsed completely and made unambiguous.
 */
function verified(chunks: Chunks, at: ResponseId): RawResponse {
  const message = readMessage(join(chunks));
  if (message.id !== at.id) throw new SwitchboardError('server_protocol_error', 'the response has two ids');
  return { chunks: [message.bytes], at: responseIdOf(message) };
}

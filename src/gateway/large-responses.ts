import { isUtf8 } from 'node:buffer';
import { SwitchboardError } from '../errors.ts';
import { skipSpace } from '../protocol/json-bytes.ts';
import { type Chunks, join } from '../protocol/jsonrpc.ts';
import { LARGE_BYTES, type Shape, type Walked, walkLarge } from '../protocol/large-walk.ts';
import { withMembers, withoutMembers } from '../protocol/members.ts';
import { idBytes } from '../protocol/message.ts';
import { readMessage } from '../protocol/message-reader.ts';
import { INPUT_REQUIRED, modernMembers, modernResultOf } from '../protocol/modern-result.ts';
import { inOneChunk, type ResponseId, responseIdEdits } from '../protocol/response.ts';
import { uriShapes } from '../protocol/result-uris.ts';
import { type Edit, spliceMany } from '../protocol/splice.ts';
import { errorOf, typeMembers } from './crossing/responses.ts';
import { affinityEdits, type FoundResult } from './modern/affinity.ts';
import { affineReplica, type MappedResponse, publicUri, type ResponseContext } from './response-mapping.ts';

/** Like `mapResponse`, in slices. Call `check` immediately before the response is sent. */
export async function mapLargeResponse(
  chunks: Chunks,
  at: ResponseId,
  call: ResponseContext,
): Promise<MappedResponse & { check(): void }> {
  const affine = at.isError ? undefined : affineReplica(chunks, call);
  const response = join(chunks);
  const walked = await walkLarge(response, at.isError ? undefined : shapeOf(call.message.method));
  const joined = inOneChunk(chunks, at);
  const edits = responseIdEdits(joined, idBytes(call.message));
  let errorCode: number | undefined;
  if (at.isError) {
    if (call.caller.era === 'modern' || call.serverEra === 'modern') errorCode = errorOf([response]).code;
  } else {
    const start = skipSpace(response, joined.payload);
    const result = { start, ...modernResultOf(response, walked.members) };
    edits.push(...eraEdits(response, result, call));
    if (affine !== undefined) edits.push(...affinityEdits(response, result, affine, call));
  }
  const message = await withPublicUris(response, edits, walked, call);
  const check = () => {
    if (call.isVerified) verify(response, walked, at);
  };
  return { message, errorCode, check };
}

const resultShape: Shape = Object.fromEntries(modernMembers.map((name) => [name, 'member']));

function shapeOf(method: string): Shape {
  const { result } = uriShapes.get(method) ?? {};
  return { result: { ...resultShape, ...(typeof result === 'object' ? result : {}) } };
}

function eraEdits(
  response: Buffer,
  result: FoundResult,
  { message, caller, serverEra }: ResponseContext,
): Edit[] {
  const { start, type, additions } = result;
  if (caller.era === 'legacy') {
    if (serverEra === 'legacy') return [];
    if (type === INPUT_REQUIRED)
      throw new SwitchboardError('server_protocol_error', `it requires input in over ${LARGE_BYTES} bytes`);
    return withoutMembers(response, additions);
  }
  const isTyped = serverEra === 'modern' && type !== undefined;
  return isTyped || response[start] !== 0x7b
    ? []
    : [withMembers(response, start, typeMembers(message.method, serverEra))];
}

function withPublicUris(
  response: Buffer,
  edits: Edit[],
  { strings }: Walked,
  call: ResponseContext,
): Promise<Buffer[]> {
  return spliceMany(response, edits, strings.length / 2, (index) =>
    publicUri(response, { start: strings[2 * index]!, end: strings[2 * index + 1]! }, call),
  );
}

/** Meanwhile the client may also await other servers. */
function verify(response: Buffer, { passed }: Walked, at: ResponseId): void {
  if (!isUtf8(response)) throw new SwitchboardError('parse_error', 'The message is not valid UTF-8.');
  if (readMessage(response, passed).id !== at.id)
    throw new SwitchboardError('server_protocol_error', 'the response has two ids');
}

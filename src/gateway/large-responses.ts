import { isUtf8 } from 'node:buffer';
import { SwitchboardError } from '../errors.ts';
import { readMessage } from '../protocol/envelope.ts';
import { byteLength, type Chunks, join } from '../protocol/jsonrpc.ts';
import { LARGE_BYTES, type Shape, type Walked, walkLarge } from '../protocol/large-walk.ts';
import { withMembers, withoutMembers } from '../protocol/members.ts';
import { INPUT_REQUIRED, modernMembers, modernResultOf } from '../protocol/modern-result.ts';
import { inOneChunk, type ResponseId, responseIdEdits } from '../protocol/response.ts';
import { mayHoldUris, uriShapes } from '../protocol/result-uris.ts';
import { type Edit, spliceMany } from '../protocol/splice.ts';
import { skipSpace } from '../protocol/white-space.ts';
import { errorOf, typeMembers } from './crossing/responses.ts';
import { type FoundResult, leadBack } from './modern/affinity.ts';
import { type AnsweredCall, leadsBackTo, type MappedAnswer, publicUri } from './response-mapping.ts';

/** Whether an answer is so large, and has to be looked into so closely, that others must have their turn meanwhile. */
export function isReadInSlices(chunks: Chunks, at: ResponseId, call: AnsweredCall): boolean {
  if (byteLength(chunks) <= LARGE_BYTES) return false;
  if (call.isVerified) return true;
  if (at.isError) return false;
  if (call.caller.era === 'legacy' && call.serverEra === 'modern') return true;
  return mayHoldUris(call.method, chunks) || leadsBackTo(chunks, call) !== undefined;
}

/** The same as `mapAnswer` does, with turns for others in between. `check` is for the moment at which it goes to the client. */
export async function mapLargeAnswer(
  chunks: Chunks,
  at: ResponseId,
  call: AnsweredCall,
): Promise<MappedAnswer & { check(): void }> {
  const leadsTo = at.isError ? undefined : leadsBackTo(chunks, call);
  const answer = join(chunks);
  const walked = await walkLarge(answer, at.isError ? undefined : shapeOf(call.method));
  const place = inOneChunk(chunks, at);
  const edits = responseIdEdits(place, call.idBytes);
  let errorCode: number | undefined;
  if (at.isError) {
    if (call.caller.era === 'modern' || call.serverEra === 'modern') errorCode = errorOf([answer]).code;
  } else {
    const start = skipSpace(answer, place.payload);
    const result = { start, ...modernResultOf(answer, walked.members) };
    edits.push(...eraEdits(answer, result, call));
    if (leadsTo !== undefined) edits.push(...leadBack(answer, result, leadsTo, call));
  }
  const message = await withPublicUris(answer, edits, walked, call);
  const check = () => {
    if (call.isVerified) verify(answer, walked, at);
  };
  return { message, errorCode, check };
}

const resultShape: Shape = Object.fromEntries(modernMembers.map((name) => [name, 'member']));

function shapeOf(method: string): Shape {
  const { result } = uriShapes.get(method) ?? {};
  return { result: { ...resultShape, ...(typeof result === 'object' ? result : {}) } };
}

/** What a result says of itself, as it is said in the era of the client. */
function eraEdits(answer: Buffer, result: FoundResult, { method, caller, serverEra }: AnsweredCall): Edit[] {
  const { start, type, additions } = result;
  if (caller.era === 'legacy') {
    if (serverEra === 'legacy') return [];
    if (type === INPUT_REQUIRED)
      throw new SwitchboardError(
        'server_protocol_error',
        `it asks for something in over ${LARGE_BYTES} bytes`,
      );
    return withoutMembers(answer, additions);
  }
  const isTyped = serverEra === 'modern' && type !== undefined;
  return isTyped || answer[start] !== 0x7b
    ? []
    : [withMembers(answer, start, typeMembers(method, serverEra))];
}

function withPublicUris(
  answer: Buffer,
  edits: Edit[],
  { strings }: Walked,
  call: AnsweredCall,
): Promise<Buffer[]> {
  return spliceMany(answer, edits, strings.length / 2, (index) =>
    publicUri(answer, { start: strings[2 * index]!, end: strings[2 * index + 1]! }, call),
  );
}

/** By then the client may await other servers, too. */
function verify(answer: Buffer, { passed }: Walked, at: ResponseId): void {
  if (!isUtf8(answer)) throw new SwitchboardError('parse_error', 'The message is not valid UTF-8.');
  if (readMessage(answer, passed).id !== at.id)
    throw new SwitchboardError('server_protocol_error', 'the answer has two ids');
}

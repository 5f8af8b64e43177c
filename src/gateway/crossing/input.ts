import { byteLength, bytesOf, type Chunks, join } from '../../protocol/jsonrpc.ts';
import { parseLossless } from '../../protocol/lossless.ts';
import { endsOf, mentions } from '../../protocol/mentions.ts';
import { INPUT_REQUIRED, readModernResult } from '../../protocol/modern-result.ts';
import { isObject } from '../../protocol/objects.ts';
import type { ResponseId } from '../../protocol/response.ts';

/** What a server of the modern era wants to know before it goes on. */
export interface WantedInput {
  requests: Record<string, unknown>;
  requestState: unknown;
}

/** Up to this size, searching an answer costs less than finding out whether that can be saved. */
export const SMALL_BYTES = 64 * 1024;
const methods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** Whether a client of the modern era can be asked for something during such a request. */
export function mayAskInput(method: string): boolean {
  return methods.has(method);
}

/** What the answer of a server of the modern era asks for; undefined where it asks for nothing. */
export function inputIn(chunks: Chunks, { payload }: ResponseId): WantedInput | undefined {
  // Small ones are the most, and searching them is quicker than reading them.
  const isPlain =
    byteLength(chunks) <= SMALL_BYTES ? !mentions(chunks, INPUT_REQUIRED) : saysComplete(chunks);
  if (isPlain) return undefined;
  const bytes = join(chunks);
  if (readModernResult(bytes, payload).type !== INPUT_REQUIRED) return undefined;
  const { result } = parseLossless(bytes.toString()) as {
    result: { inputRequests?: unknown; requestState?: unknown };
  };
  const { inputRequests, requestState } = result;
  return { requests: isObject(inputRequests) ? inputRequests : {}, requestState };
}

/** Servers write it first or last: of what is large, only the ends are looked at. In a text its quotes would be escaped. */
function saysComplete(chunks: Chunks): boolean {
  return endsOf(chunks).some((end) => complete.test(end.toString('latin1')));
}

const complete = /"resultType"\s*:\s*"complete"/;

/** A result that asks the client for something. */
export function inputRequired(inputRequests: object, requestState: string | undefined): Buffer {
  return bytesOf({ resultType: INPUT_REQUIRED, inputRequests, requestState });
}

/** What the client is sent back with, as members of its params. */
export function inputMembers(inputResponses: object, requestState: unknown): Buffer {
  const text = JSON.stringify({ inputResponses, requestState });
  return Buffer.from(text.slice(1, -1));
}

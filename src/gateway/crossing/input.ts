import { asObject, isObject } from '../../json.ts';
import { byteLength, bytesOf, type Chunks, join } from '../../protocol/jsonrpc.ts';
import { parseLossless } from '../../protocol/lossless.ts';
import { endsOf, mentions } from '../../protocol/mentions.ts';
import { INPUT_REQUIRED, readModernResult } from '../../protocol/modern-result.ts';
import type { ResponseId } from '../../protocol/response.ts';

/** What a modern server needs from the client before it continues a call. */
export interface RequiredInput {
  requests: Record<string, unknown>;
  requestState: unknown;
}

/** Up to this size, searching a response costs less than finding out whether the search is needed. */
export const SMALL_BYTES = 64 * 1024;
const inputMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** The capability that a client must declare, by the method of the server's request. */
const capabilityOf: Record<string, string> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
};

export function isServerRequest(method: string): boolean {
  return Object.hasOwn(capabilityOf, method);
}

export function missingCapability(
  capabilities: Record<string, unknown>,
  method: string,
  params: unknown,
): string | undefined {
  if (!isServerRequest(method)) return method;
  const capability = capabilityOf[method]!;
  const declared = capabilities[capability];
  if (declared === undefined) return capability;
  const { mode } = asObject(params);
  // A client that declares no modes supports forms.
  const lacksUrls = method === 'elicitation/create' && mode === 'url' && asObject(declared).url === undefined;
  return lacksUrls ? 'elicitation by URL' : undefined;
}

/** Whether a response to this method may require input from a modern client. */
export function mayRequireInput(method: string): boolean {
  return inputMethods.has(method);
}

/** The input that a modern server's response requires; undefined if it requires none. */
export function readRequiredInput(chunks: Chunks, { payload }: ResponseId): RequiredInput | undefined {
  // Most responses are small, and searching them is quicker than parsing them.
  const isComplete =
    byteLength(chunks) <= SMALL_BYTES ? !mentions(chunks, INPUT_REQUIRED) : saysComplete(chunks);
  if (isComplete) return undefined;
  const bytes = join(chunks);
  if (readModernResult(bytes, payload).type !== INPUT_REQUIRED) return undefined;
  const { result } = parseLossless(bytes.toString()) as {
    result: { inputRequests?: unknown; requestState?: unknown };
  };
  const { inputRequests, requestState } = result;
  return { requests: isObject(inputRequests) ? inputRequests : {}, requestState };
}

/** Servers write the type first or last, so only the ends of a large response are searched. Quotes inside a text are escaped. */
function saysComplete(chunks: Chunks): boolean {
  return endsOf(chunks).some((end) => complete.test(end.toString('latin1')));
}

const complete = /"resultType"\s*:\s*"complete"/;

export function inputRequired(inputRequests: object, requestState: string | undefined): Buffer {
  return bytesOf({ resultType: INPUT_REQUIRED, inputRequests, requestState });
}

/** The members of `params` that a client returns with. */
export function inputMembers(inputResponses: object, requestState: unknown): Buffer {
  const text = JSON.stringify({ inputResponses, requestState });
  return Buffer.from(text.slice(1, -1));
}

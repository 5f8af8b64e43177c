import { SwitchboardError } from '../errors.ts';
import { byteLength, type Chunks, join, type RpcError } from '../protocol/jsonrpc.ts';
import { parseLossless } from '../protocol/lossless.ts';
import { notJson, ServerAnsweredError } from './server-errors.ts';

/** What a server says to us is short, but for lists. */
const LARGEST_ANSWER = 4 * 1024 * 1024;

/** The result of one of our own requests. Throws where the server answered with an error. */
export function resultOf(method: string, chunks: Chunks): unknown {
  if (byteLength(chunks) > LARGEST_ANSWER) {
    const why = `The answer to ${method} is larger than ${LARGEST_ANSWER} bytes.`;
    throw new SwitchboardError('answer_too_large', why);
  }
  let answer: { result?: unknown; error?: RpcError };
  try {
    answer = parseLossless(join(chunks).toString()) as typeof answer;
  } catch (error) {
    throw notJson(method, error);
  }
  if (answer.error !== undefined) throw new ServerAnsweredError(method, answer.error);
  return answer.result;
}

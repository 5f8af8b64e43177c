import type { RequestKind } from '../channels/channel.ts';
import { SwitchboardError } from '../errors.ts';
import { byteLength, type Chunks, join, type RpcError } from '../protocol/jsonrpc.ts';
import { parseLossless } from '../protocol/lossless.ts';
import type { PendingRequest } from './request.ts';
import { notJson, RpcResponseError } from './server-errors.ts';
import type { Upstream } from './upstream.ts';

/** Sends a request of our own and returns its result. Without a timeout it waits until the connection is lost. */
export async function sendRequest(
  upstream: Upstream,
  method: string,
  params?: unknown,
  timeoutMs?: number,
  kind?: RequestKind,
): Promise<unknown> {
  return resultOf(method, await sendRawRequest(upstream, method, params, timeoutMs, kind));
}

/** The same for what may be large: the answer as it came. */
export function sendRawRequest(
  upstream: Upstream,
  method: string,
  params?: unknown,
  timeoutMs?: number,
  kind?: RequestKind,
): Promise<Chunks> {
  return new Promise((resolve, reject) => {
    let id = -1;
    const giveUp = () => {
      upstream.cancel(id, 'No answer came in time.');
      reject(new SwitchboardError('call_timeout', `No answer to ${method} came within ${timeoutMs} ms.`));
    };
    const patience = timeoutMs === undefined ? undefined : setTimeout(giveUp, timeoutMs).unref();
    const call: PendingRequest = {
      client: undefined,
      onError: (error) => {
        clearTimeout(patience);
        reject(error);
      },
      onResponse: (chunks) => {
        clearTimeout(patience);
        resolve(chunks);
      },
    };
    id = upstream.request(method, params, call, kind);
  });
}

/** What a server says to us is short, but for lists. */
const LARGEST_ANSWER = 4 * 1024 * 1024;

/** The result of one of our own requests. Throws where the server answered with an error. */
function resultOf(method: string, chunks: Chunks): unknown {
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
  if (answer.error !== undefined) throw new RpcResponseError(method, answer.error);
  return answer.result;
}

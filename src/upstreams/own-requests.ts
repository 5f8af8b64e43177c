import type { RequestKind } from '../channels/channel.ts';
import { SwitchboardError } from '../errors.ts';
import { byteLength, type Chunks, join, type RpcError } from '../protocol/jsonrpc.ts';
import { parseLossless } from '../protocol/lossless.ts';
import type { PendingRequest } from './request.ts';
import { notJson, RpcResponseError } from './server-errors.ts';
import type { Upstream } from './upstream.ts';

/** Sends our own request and returns the result. Without a timeout, it waits until the connection is lost. */
export async function sendRequest(
  upstream: Upstream,
  method: string,
  params?: unknown,
  timeoutMs?: number,
  kind?: RequestKind,
): Promise<unknown> {
  return resultOf(method, await sendRawRequest(upstream, method, params, timeoutMs, kind));
}

/** The same for large responses, which are returned unparsed. */
export function sendRawRequest(
  upstream: Upstream,
  method: string,
  params?: unknown,
  timeoutMs?: number,
  kind?: RequestKind,
): Promise<Chunks> {
  return new Promise((resolve, reject) => {
    let id = -1;
    const expire = () => {
      upstream.cancel(id, 'The request timed out.');
      reject(new SwitchboardError('call_timeout', `No response to ${method} within ${timeoutMs} ms.`));
    };
    const timer = timeoutMs === undefined ? undefined : setTimeout(expire, timeoutMs).unref();
    const call: PendingRequest = {
      client: undefined,
      onError: (error) => {
        clearTimeout(timer);
        reject(error);
      },
      onResponse: (chunks) => {
        clearTimeout(timer);
        resolve(chunks);
      },
    };
    id = upstream.request(method, params, call, kind);
  });
}

/** Only lists may be larger. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

function resultOf(method: string, chunks: Chunks): unknown {
  if (byteLength(chunks) > MAX_RESPONSE_BYTES) {
    const why = `The response to ${method} is larger than ${MAX_RESPONSE_BYTES} bytes.`;
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

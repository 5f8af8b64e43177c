import { SwitchboardError } from '../errors.ts';
import { byteLength, type Chunks, join, type RpcError } from '../protocol/jsonrpc.ts';
import { parseLossless } from '../protocol/lossless.ts';
import type { Message } from '../protocol/message.ts';
import { readMessage } from '../protocol/message-reader.ts';
import { INPUT_REQUIRED } from '../protocol/modern-result.ts';
import type { ResponseId } from '../protocol/response.ts';
import { Delivery } from './delivery.ts';
import type { Group } from './group.ts';
import { relayedCapabilities } from './handshake.ts';
import type { Client } from './request.ts';
import type { ResponseHandler, RoutedRequest } from './routed-request.ts';
import type { Server } from './server.ts';

export interface RequestInput {
  method: string;
  /** As JSON. */
  paramsText?: string | undefined;
  timeoutMs?: number | undefined;
}

/** Numbers keep the server's spelling. */
export type RpcResponse = { result: unknown } | { error: RpcError };

export interface RequestOutcome {
  method: string;
  server: string;
  replica: number | undefined;
  /** The server's own name or URI of the target. */
  own: string;
  outcome: 'answered' | 'failed' | 'cancelled';
  /** The response is a JSON-RPC error. */
  isRpcError: boolean;
  error: SwitchboardError | undefined;
  durationMs: number;
  inputBytes: number;
  outputBytes: number;
  request: Message;
  answer: Chunks | undefined;
}

/** The client of requests without one. */
const noClient: Client = { era: 'modern' };

/** Which servers of a group may get the request. */
export interface RequestScope
  extends Partial<Pick<RoutedRequest, 'client' | 'server' | 'among' | 'only' | 'isRepeatable'>> {
  /** The name of the server in errors if none was reached. */
  name: string;
}

/** Sends a request like a client, over the same connections and queues. Rejects without a response; `onFinished` gets the outcome. */
export function requestServer(
  server: Server,
  group: Group,
  input: RequestInput,
  signal: AbortSignal | undefined,
  onFinished?: (call: RequestOutcome) => void,
): Promise<RpcResponse> {
  return requestGroup(group, { name: server.name, only: server.replicas[0] }, input, signal, onFinished);
}

/** The same for any server of a group. */
export function requestGroup(
  group: Group,
  { name, ...scope }: RequestScope,
  { method, paramsText, timeoutMs }: RequestInput,
  signal: AbortSignal | undefined,
  onFinished: (call: RequestOutcome) => void = () => {},
): Promise<RpcResponse> {
  const startedAt = performance.now();
  const message = messageOf(method, paramsText);
  const own = message.name?.value ?? message.uri?.value ?? method;
  return new Promise((resolve, reject) => {
    const settled = (how: Pick<RequestOutcome, 'outcome' | 'isRpcError' | 'error'>, answer?: Chunks) => {
      signal?.removeEventListener('abort', cancel);
      const { replica } = delivery;
      onFinished({
        ...how,
        ...{ method, own, request: message, answer },
        server: replica?.server ?? name,
        replica: replica?.number,
        durationMs: performance.now() - startedAt,
        inputBytes: message.bytes.length,
        outputBytes: answer === undefined ? 0 : byteLength(answer),
      });
    };
    const handler: ResponseHandler = {
      onResponse(chunks: Chunks, at: ResponseId) {
        settled({ outcome: 'answered', isRpcError: at.isError, error: undefined }, chunks);
        try {
          resolve(answerIn(chunks, delivery.replica?.server ?? name));
        } catch (error) {
          reject(error);
        }
      },
      onError(error) {
        settled({ outcome: 'failed', isRpcError: false, error });
        reject(error);
      },
      onProgress(_message: Message) {},
      onPaused() {},
      waitedUntil: () => 0,
    };
    const delivery = new Delivery(group, { ...requestOf(message, own, timeoutMs), ...scope }, handler);
    const cancel = () => {
      delivery.cancel('The request was cancelled.');
      settled({ outcome: 'cancelled', isRpcError: false, error: undefined });
      reject(new SwitchboardError('server_unavailable', 'The request was cancelled.'));
    };
    signal?.addEventListener('abort', cancel);
    delivery.begin();
  });
}

function messageOf(method: string, paramsText: string | undefined): Message {
  const params = paramsText === undefined ? '' : `,"params":${paramsText}`;
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":0,"method":${JSON.stringify(method)}${params}}`));
}

function requestOf(message: Message, own: string, timeoutMs: number | undefined): RoutedRequest {
  return {
    ...{ client: noClient, kind: 'tools', own, message, edits: [], timeoutMs, sender: undefined },
    ...{ server: undefined, among: undefined, labels: undefined, only: undefined },
    ...{ description: { capabilities: relayedCapabilities }, isRepeatable: false },
  };
}

function answerIn(chunks: Chunks, server: string): RpcResponse {
  let answer: RpcResponse;
  try {
    answer = parseLossless(join(chunks).toString()) as RpcResponse;
  } catch (error) {
    if (error instanceof SwitchboardError) {
      const why = `Server "${server}" sent a response that is too large: ${error.message}`;
      throw new SwitchboardError('answer_too_large', why);
    }
    const why = `Server "${server}" sent a response that is not valid JSON.`;
    throw new SwitchboardError('server_protocol_error', why, { cause: error });
  }
  if (typeOf(answer) === INPUT_REQUIRED) throw nobodyToAsk(server);
  return withoutType(answer);
}

function typeOf(answer: RpcResponse): unknown {
  const { resultType } = (('result' in answer ? answer.result : undefined) ?? {}) as { resultType?: unknown };
  return resultType;
}

/** Hides from the caller which era the server has. */
function withoutType(answer: RpcResponse): RpcResponse {
  if (typeOf(answer) !== 'complete' || !('result' in answer)) return answer;
  const { resultType, ...result } = answer.result as Record<string, unknown>;
  return { result };
}

function nobodyToAsk(server: string): SwitchboardError {
  const why = `Server "${server}" needs input before it can respond, and there is no client to ask.`;
  return new SwitchboardError('client_unavailable', why, { data: { server } });
}

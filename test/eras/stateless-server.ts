import { answerJson, type PeerExchange, type Quirk } from '../helpers/http-peer.ts';
import type { RpcMessage } from '../helpers/raw-http.ts';

/** Undefined if the function responds itself, or never. */
export type AnswerCall = (request: RpcMessage, exchange: PeerExchange) => object | undefined;

/** Speaks only protocol 2026-07-28. */
export function statelessServer(
  tools: readonly string[],
  answer: AnswerCall,
  discovered: object = {},
): Quirk {
  return (exchange) => {
    const { message, method, response } = exchange;
    if (method !== 'POST' || message?.id === undefined) return false;
    if (message.method === 'initialize') {
      const error = { code: -32601, message: 'Unknown method: initialize' };
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }));
      return true;
    }
    const result = resultOf(message, tools, discovered) ?? answer(message, exchange);
    if (result !== undefined) answerJson(response, { id: message.id, result });
    return true;
  };
}

function resultOf({ method }: RpcMessage, tools: readonly string[], discovered: object): object | undefined {
  const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'public' };
  if (method === 'server/discover')
    return { ...complete, supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, ...discovered };
  if (method === 'tools/list')
    return { ...complete, tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) };
  return undefined;
}

export function says(text: string) {
  return { resultType: 'complete', content: [{ type: 'text', text }] };
}

/** A result that asks for a name. */
export function asksName(requestState: string | undefined, more: object = {}) {
  return {
    resultType: 'input_required',
    inputRequests: {
      name: {
        method: 'elicitation/create',
        params: { message: 'What is your name?', requestedSchema: { type: 'object', properties: {} } },
      },
      ...more,
    },
    requestState,
  };
}

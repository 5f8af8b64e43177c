import type { RpcMessage } from '../helpers/raw-http.ts';

/** What a client of the modern era is asked for by an answer. */
export interface Asked {
  inputRequests: Record<string, { method: string; params: Record<string, unknown> }>;
  requestState: string;
}

export function askedBy({ result, error }: RpcMessage): Asked {
  if (result?.resultType !== 'input_required')
    throw new Error(`asks nothing: ${JSON.stringify(result ?? error)}`);
  return result as unknown as Asked;
}

export function accept(name: string) {
  return { action: 'accept', content: { name } };
}

/** The same answer to everything that is asked for, with the state that has to come along. */
export function comeBack({ inputRequests, requestState }: Asked, answer: object = accept('Ada')) {
  return {
    inputResponses: Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer])),
    requestState,
  };
}

export function textIn({ result, error }: RpcMessage): string {
  if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
  const { content, messages, contents } = result as {
    content?: { text: string }[];
    messages?: { content: { text: string } }[];
    contents?: { text: string }[];
  };
  return content?.[0]?.text ?? messages?.[0]?.content.text ?? contents?.[0]?.text ?? '';
}

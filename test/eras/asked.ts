import type { RpcMessage } from '../helpers/raw-http.ts';

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

/** Gives the same response to every input request, with the request state. */
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

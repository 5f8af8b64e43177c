import type { RpcMessage } from '../helpers/raw-http.ts';
import type { Peer, ToolResult } from './peer.ts';

export function textOf({ content }: ToolResult): string {
  return content.map(({ text = '' }) => text).join('\n');
}

/** The error as received: the SDKs change some of them. */
export async function refusalOf(
  peer: Peer,
  request: Promise<unknown>,
): Promise<NonNullable<RpcMessage['error']>> {
  const isRefused = await request.then(
    () => false,
    () => true,
  );
  const refusal = peer.received.items.findLast(({ error }) => error !== undefined)?.error;
  if (!isRefused || refusal === undefined) throw new Error('the request was not refused');
  return refusal;
}

export function isOf(method: string) {
  return (message: RpcMessage) => message.method === method;
}

export function paramsOf(peer: Peer, method: string): Record<string, unknown>[] {
  return peer.received.items.filter(isOf(method)).map(({ params = {} }) => params);
}

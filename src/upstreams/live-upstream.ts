import { SwitchboardError } from '../errors.ts';
import type { Listening } from './listening.ts';
import { sendRequest } from './own-requests.ts';
import type { ServerFacts } from './server-facts.ts';
import type { Upstream } from './upstream.ts';

/** A server that we have shaken hands with. */
export interface LiveUpstream {
  upstream: Upstream;
  facts: ServerFacts;
  /** How a server of the modern era is made to tell of changes. */
  listening: Listening | undefined;
}

/** A server that does not answer a subscription in this time gets no more of the client's. */
const SUBSCRIBE_MS = 60_000;

export function checkSubscribable({ facts }: LiveUpstream): void {
  const { subscribe: can } = (facts.capabilities.resources ?? {}) as { subscribe?: unknown };
  if (can !== true)
    throw new SwitchboardError('method_not_found', 'The server of this resource has no subscriptions.');
}

/** Asks a server for the updates of a resource. */
export function sendSubscribe({ upstream, listening }: LiveUpstream, uri: string): Promise<unknown> {
  if (listening !== undefined) return listening.subscribe(uri);
  return sendRequest(upstream, 'resources/subscribe', { uri }, SUBSCRIBE_MS);
}

export function sendUnsubscribe({ upstream, listening }: LiveUpstream, uri: string): Promise<unknown> {
  if (listening !== undefined) return listening.unsubscribe();
  return sendRequest(upstream, 'resources/unsubscribe', { uri }, SUBSCRIBE_MS);
}

/** In the modern era it stands in every request. */
export async function sendLogLevel(
  { upstream, facts }: LiveUpstream,
  level: string,
  timeoutMs: number,
): Promise<void> {
  if (facts.capabilities.logging === undefined || facts.era === 'modern') return;
  await sendRequest(upstream, 'logging/setLevel', { level }, timeoutMs);
}

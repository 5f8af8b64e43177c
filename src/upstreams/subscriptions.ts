import { SwitchboardError } from '../errors.ts';
import type { LiveUpstream } from './connector.ts';
import { sendRequest } from './own-requests.ts';
import type { Client } from './request.ts';

interface Subscription {
  clients: Set<Client>;
  /** Settles when the server has accepted or rejected it. */
  accepted: Promise<unknown>;
}

/** For all URIs together, which a modern server gets with every new one. */
const MAX_LENGTH = 1024 * 1024;
const SUBSCRIBE_TIMEOUT_MS = 60_000;

/** Which clients subscribed to which resources of one server. The server sees one subscription for each resource. */
export class Subscriptions {
  private readonly byUri = new Map<string, Subscription>();
  /** The length of all URIs together. */
  private length = 0;

  /** Sends the subscription to the server if this is the first client. */
  async add(uri: string, client: Client, live: LiveUpstream): Promise<void> {
    checkSubscribable(live);
    let subscription = this.byUri.get(uri);
    if (subscription === undefined) {
      if (this.length + uri.length > MAX_LENGTH)
        throw new SwitchboardError('server_busy', 'This server has too many resource subscriptions.');
      const accepted =
        live.listening?.subscribe(uri) ??
        sendRequest(live.upstream, 'resources/subscribe', { uri }, SUBSCRIBE_TIMEOUT_MS);
      subscription = { clients: new Set(), accepted };
      this.byUri.set(uri, subscription);
      this.length += uri.length;
    }
    subscription.clients.add(client);
    try {
      await subscription.accepted;
    } catch (error) {
      if (this.byUri.get(uri) === subscription) this.delete(uri);
      throw error;
    }
  }

  /** Returns true if this was the last client of the URI: then the server must be notified. */
  remove(uri: string, client: Client): boolean {
    const clients = this.byUri.get(uri)?.clients;
    if (clients === undefined || !clients.delete(client) || clients.size > 0) return false;
    this.delete(uri);
    return true;
  }

  /** Returns the URIs of which this was the last client. */
  removeClient(client: Client): string[] {
    return this.uris().filter((uri) => this.remove(uri, client));
  }

  clear(): void {
    this.byUri.clear();
    this.length = 0;
  }

  uris(): string[] {
    return [...this.byUri.keys()];
  }

  /** The clients of an updated resource, or of one that contains it. */
  *subscribers(updatedUri: string): Generator<[Client, string]> {
    for (const [uri, { clients }] of this.byUri) {
      if (!contains(uri, updatedUri)) continue;
      for (const client of clients) yield [client, uri];
    }
  }

  private delete(uri: string): void {
    if (this.byUri.delete(uri)) this.length -= uri.length;
  }
}

export async function sendUnsubscribe({ upstream, listening }: LiveUpstream, uri: string): Promise<void> {
  if (listening !== undefined) await listening.unsubscribe();
  else await sendRequest(upstream, 'resources/unsubscribe', { uri }, SUBSCRIBE_TIMEOUT_MS);
}

function checkSubscribable({ facts }: LiveUpstream): void {
  const { subscribe } = (facts.capabilities.resources ?? {}) as { subscribe?: unknown };
  if (subscribe !== true)
    throw new SwitchboardError('method_not_found', 'The server of this resource has no subscriptions.');
}

function contains(uri: string, updated: string): boolean {
  if (!updated.startsWith(uri)) return false;
  return updated.length === uri.length || uri.endsWith('/') || '/#?'.includes(updated[uri.length]!);
}

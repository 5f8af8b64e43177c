import { SwitchboardError } from '../errors.ts';
import type { Client } from './request.ts';

interface Subscription {
  clients: Set<Client>;
  /** Settles when the server has accepted it. */
  accepted: Promise<unknown>;
}

/** Servers of the modern era are told all of them with every new one. */
const MAX_LENGTH = 1024 * 1024;

/** Who follows which resources of one server. The server itself sees one subscription, however many there are. */
export class Subscriptions {
  private readonly byUri = new Map<string, Subscription>();
  /** Of all URIs together. */
  private length = 0;

  /** `tell` asks the server, and is called for the first client only. */
  async add(uri: string, client: Client, tell: () => Promise<unknown>): Promise<void> {
    let subscription = this.byUri.get(uri);
    if (subscription === undefined) {
      if (this.length + uri.length > MAX_LENGTH)
        throw new SwitchboardError(
          'server_busy',
          'So many resources of this server are followed that there is no room for more.',
        );
      subscription = { clients: new Set(), accepted: tell() };
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

  /** True when nobody follows the URI any more: the server has to be told. */
  remove(uri: string, client: Client): boolean {
    const clients = this.byUri.get(uri)?.clients;
    if (clients === undefined || !clients.delete(client) || clients.size > 0) return false;
    this.delete(uri);
    return true;
  }

  clear(): void {
    this.byUri.clear();
    this.length = 0;
  }

  /** The URIs that nobody follows any more, now that this client is gone. */
  removeClient(client: Client): string[] {
    return this.uris().filter((uri) => this.remove(uri, client));
  }

  uris(): string[] {
    return [...this.byUri.keys()];
  }

  private delete(uri: string): void {
    if (this.byUri.delete(uri)) this.length -= uri.length;
  }

  /** Those who follow the resource, or one that it is part of. */
  *subscribers(updatedUri: string): Generator<[Client, string]> {
    for (const [uri, { clients }] of this.byUri) {
      if (!isSameOrPart(updatedUri, uri)) continue;
      for (const client of clients) yield [client, uri];
    }
  }
}

function isSameOrPart(updated: string, followed: string): boolean {
  if (!updated.startsWith(followed)) return false;
  return (
    updated.length === followed.length || followed.endsWith('/') || '/#?'.includes(updated[followed.length]!)
  );
}

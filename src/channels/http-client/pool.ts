import type { Chunks } from '../../protocol/jsonrpc.ts';
import { type Address, Connection, type ConnectionOwner } from './connection.ts';
import type { HttpExchange } from './exchange.ts';
import { type HttpProxy, throughProxy } from './proxy.ts';
import { HeadReader } from './response-head.ts';

const MAX_CONNECTIONS = 256;

interface PoolOptions {
  vet?: (() => Promise<void>) | undefined;
  proxy?: HttpProxy | undefined;
}

/**
 * Connections to one server, kept open between exchanges. One exchange at a time on each; those that find no
 * connection wait in line. Deadlines are the caller's business: an exchange may last for ever.
 */
export class ConnectionPool implements ConnectionOwner {
  private readonly address: Address;
  /** What has to be another in requests that a proxy makes for us. */
  private readonly adapt: ((requestHead: string) => string) | undefined;
  private readonly heads = new HeadReader();
  private readonly connections = new Set<Connection>();
  /** The one that was used last stands last, and is used next. */
  private idle: Connection[] = [];
  private readonly waiting = new Set<HttpExchange>();
  private sweep: NodeJS.Timeout | undefined;
  private isDestroyed = false;

  /** `vet` looks at each connection before anything is sent on it. */
  constructor(url: URL, { vet, proxy }: PoolOptions = {}) {
    const isSecure = url.protocol === 'https:';
    this.adapt = proxy === undefined || isSecure ? undefined : (head) => throughProxy(head, url, proxy);
    this.address = {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: Number(url.port) || (isSecure ? 443 : 80),
      isSecure,
      vet,
      proxy,
    };
  }

  /** Never tells the exchange anything before it returns. */
  send(exchange: HttpExchange, requestHead: string, requestBody?: Chunks): void {
    if (this.isDestroyed) return;
    exchange.requestHead = this.adapt === undefined ? requestHead : this.adapt(requestHead);
    exchange.requestBody = requestBody;
    const connection = this.takeIdle();
    if (connection !== undefined) connection.carry(exchange);
    else if (this.connections.size < MAX_CONNECTIONS) this.open(exchange);
    else this.enqueue(exchange);
  }

  /** How many exchanges wait for a connection. */
  get queued(): number {
    return this.waiting.size;
  }

  /** Takes a waiting exchange out of the line. */
  drop(exchange: HttpExchange): void {
    this.waiting.delete(exchange);
    exchange.carrier = undefined;
  }

  /** Closes everything at once. Exchanges that are under way or waiting hear nothing more. */
  destroy(): void {
    this.isDestroyed = true;
    clearTimeout(this.sweep);
    this.waiting.clear();
    for (const connection of this.connections) connection.destroy();
  }

  released(connection: Connection): void {
    const next = this.nextWaiting();
    if (next !== undefined) {
      connection.carry(next);
      return;
    }
    this.idle.push(connection);
    this.sweep ??= this.sweepAfter(connection.idleMs);
  }

  gone(connection: Connection): void {
    this.connections.delete(connection);
    const place = this.idle.indexOf(connection);
    if (place !== -1) this.idle.splice(place, 1);
    if (this.isDestroyed) return;
    const next = this.nextWaiting();
    if (next !== undefined) this.open(next);
  }

  private open(exchange: HttpExchange): void {
    this.connections.add(new Connection(this.address, this.heads, this, exchange));
  }

  private enqueue(exchange: HttpExchange): void {
    exchange.carrier = this;
    this.waiting.add(exchange);
  }

  private nextWaiting(): HttpExchange | undefined {
    const [next] = this.waiting;
    if (next !== undefined) this.waiting.delete(next);
    return next;
  }

  private takeIdle(): Connection | undefined {
    for (;;) {
      const connection = this.idle.pop();
      if (connection === undefined || connection.isUsable()) return connection;
      connection.destroy();
    }
  }

  /** Idle connections that will not be used again are closed, not left for the server to close. */
  private sweepAfter(milliseconds: number): NodeJS.Timeout {
    return setTimeout(() => {
      for (const connection of [...this.idle]) if (!connection.isUsable()) connection.destroy();
      const [longestIdle] = this.idle;
      this.sweep = longestIdle === undefined ? undefined : this.sweepAfter(longestIdle.idleMs);
    }, milliseconds).unref();
  }
}

import type { Chunks } from '../../protocol/jsonrpc.ts';
import { type Address, type ConnectionOwner, HttpConnection } from './connection.ts';
import type { HttpExchange } from './exchange.ts';
import { type HttpProxy, throughProxy, withoutBrackets } from './proxy.ts';
import { HeadReader } from './response-head.ts';

const MAX_CONNECTIONS = 256;

interface PoolOptions {
  vet?: (() => Promise<void>) | undefined;
  /** Needs `vet`. */
  acceptsAnyCertificate?: boolean | undefined;
  proxy?: HttpProxy | undefined;
}

/** Connections to one server, kept alive between exchanges, one exchange at a time each. Deadlines are up to the caller. */
export class ConnectionPool implements ConnectionOwner {
  private readonly address: Address;
  /** Changes a request for the proxy. */
  private readonly adapt: ((requestHead: string) => string) | undefined;
  private readonly heads = new HeadReader();
  private readonly connections = new Set<HttpConnection>();
  /** The most recently used one is last, and is used next. */
  private idle: HttpConnection[] = [];
  private readonly queue = new Set<HttpExchange>();
  private sweep: NodeJS.Timeout | undefined;
  private isDestroyed = false;

  constructor(url: URL, { vet, acceptsAnyCertificate, proxy }: PoolOptions = {}) {
    const isSecure = url.protocol === 'https:';
    this.adapt = proxy === undefined || isSecure ? undefined : (head) => throughProxy(head, url, proxy);
    this.address = {
      host: withoutBrackets(url.hostname),
      port: Number(url.port) || (isSecure ? 443 : 80),
      isSecure,
      vet,
      acceptsAnyCertificate: acceptsAnyCertificate && vet !== undefined,
      proxy,
    };
  }

  /** Calls no handler of the exchange before it returns. */
  send(exchange: HttpExchange, requestHead: string, requestBody?: Chunks): void {
    if (this.isDestroyed) return;
    exchange.requestHead = this.adapt === undefined ? requestHead : this.adapt(requestHead);
    exchange.requestBody = requestBody;
    const connection = this.takeIdle();
    if (connection !== undefined) connection.carry(exchange);
    else if (this.connections.size < MAX_CONNECTIONS) this.open(exchange);
    else this.enqueue(exchange);
  }

  get queued(): number {
    return this.queue.size;
  }

  drop(exchange: HttpExchange): void {
    this.queue.delete(exchange);
    exchange.carrier = undefined;
  }

  /** Does not notify exchanges. */
  destroy(): void {
    this.isDestroyed = true;
    clearTimeout(this.sweep);
    this.queue.clear();
    for (const connection of this.connections) connection.destroy();
  }

  released(connection: HttpConnection): void {
    const next = this.dequeue();
    if (next !== undefined) {
      connection.carry(next);
      return;
    }
    this.idle.push(connection);
    this.sweep ??= this.sweepAfter(connection.idleMs);
  }

  gone(connection: HttpConnection): void {
    this.connections.delete(connection);
    const index = this.idle.indexOf(connection);
    if (index !== -1) this.idle.splice(index, 1);
    if (this.isDestroyed) return;
    const next = this.dequeue();
    if (next !== undefined) this.open(next);
  }

  private open(exchange: HttpExchange): void {
    this.connections.add(new HttpConnection(this.address, this.heads, this, exchange));
  }

  private enqueue(exchange: HttpExchange): void {
    exchange.carrier = this;
    this.queue.add(exchange);
  }

  private dequeue(): HttpExchange | undefined {
    const [next] = this.queue;
    if (next !== undefined) this.queue.delete(next);
    return next;
  }

  private takeIdle(): HttpConnection | undefined {
    for (;;) {
      const connection = this.idle.pop();
      if (connection === undefined || connection.isUsable()) return connection;
      connection.destroy();
    }
  }

  /** Closes idle connections before the server does. */
  private sweepAfter(milliseconds: number): NodeJS.Timeout {
    return setTimeout(() => {
      for (const connection of [...this.idle]) if (!connection.isUsable()) connection.destroy();
      const [longestIdle] = this.idle;
      this.sweep = longestIdle === undefined ? undefined : this.sweepAfter(longestIdle.idleMs);
    }, milliseconds).unref();
  }
}

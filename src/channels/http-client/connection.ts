import { connect as connectTcp, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { byteLength, join } from '../../protocol/jsonrpc.ts';
import type { HttpExchange } from './exchange.ts';
import { connectToProxy, type HttpProxy, openTunnel, tlsOptions } from './proxy.ts';
import type { HeadReader, ResponseHead } from './response-head.ts';
import { ResponseParser, type ResponseSink } from './response-parser.ts';

export interface Address {
  host: string;
  port: number;
  isSecure: boolean;
  vet?: (() => Promise<void>) | undefined;
  /** For the command line alone, which trusts the owner of a socket on this machine instead: `vet` must check that. */
  acceptsAnyCertificate?: boolean | undefined;
  proxy?: HttpProxy | undefined;
}

export interface ConnectionOwner {
  /** The connection is idle, and can carry another exchange. */
  released(connection: HttpConnection): void;
  gone(connection: HttpConnection): void;
}

const CONNECT_MS = 10_000;
const TCP_PROBE_MS = 60_000;
/** How many messages of a stream are processed per turn of the event loop. */
const MESSAGES_PER_TURN = 500;
const READ_BYTES = 64 * 1024;
/** A read of this size or more takes the read buffer; smaller ones are copied, which is cheaper. */
const HAND_OVER_BYTES = 32 * 1024;
/** Node writes strings up to this size without an allocation. */
const MAX_STRING_BODY_BYTES = 12 * 1024;
const MAX_JOINED_BODY_BYTES = 64 * 1024;

/** One connection, opened for an exchange and kept alive for others. */
export class HttpConnection implements ResponseSink {
  private readonly owner: ConnectionOwner;
  private socket: Socket;
  private readonly parser: ResponseParser;
  private readonly connectTimer: NodeJS.Timeout;
  private readBuffer: Buffer | undefined;
  private exchange: HttpExchange | undefined;
  private keepAliveMs = 0;
  /** The label of the proxy. */
  private readonly proxy: string | undefined;
  private isConnected = false;
  private isGone = false;
  private usableUntil = 0;
  /** Processed in this turn of the event loop. */
  private messages = 0;

  constructor(address: Address, heads: HeadReader, owner: ConnectionOwner, first: HttpExchange) {
    this.owner = owner;
    this.parser = new ResponseParser(this, heads);
    this.exchange = first;
    first.carrier = this;
    this.connectTimer = setTimeout(() => this.fail(connectTimeout()), CONNECT_MS);
    const { proxy, isSecure } = address;
    this.proxy = proxy?.label;
    this.socket = proxy === undefined ? this.open(address) : connectToProxy(proxy);
    if (proxy === undefined) this.watch(isSecure, () => this.connected(address.vet));
    else this.watch(proxy.isSecure, () => this.connectThrough(proxy, address));
  }

  private watch(isSecure: boolean, connected: () => void): void {
    const { socket } = this;
    // A tunnel's socket is replaced by the TLS socket on top of it.
    const ifCurrent = (action: () => void) => {
      if (this.socket === socket) action();
    };
    socket.once(isSecure ? 'secureConnect' : 'connect', connected);
    socket.on('error', (error) => ifCurrent(() => this.fail(error)));
    socket.on('end', () => ifCurrent(() => this.serverEnded()));
    socket.on('close', () => ifCurrent(() => this.fail(new Error('the connection was closed'))));
  }

  /** The proxy forwards plain HTTP requests, and opens a tunnel for TLS. */
  private connectThrough(proxy: HttpProxy, address: Address): void {
    if (!address.isSecure) {
      this.readData();
      this.connected(address.vet);
      return;
    }
    openTunnel(this.socket, proxy, address, (error) => {
      if (error !== undefined || this.isGone) {
        this.fail(error ?? new Error('the connection was closed'));
        return;
      }
      this.socket = connectTls({ socket: this.socket, ...tlsOptions(address.host) });
      this.readData();
      this.watch(true, () => this.connected(address.vet));
    });
  }

  /** For a socket that does not read into our own buffer. */
  private readData(): void {
    this.socket.on('data', (chunk: Buffer) => {
      if (!this.receive(chunk, chunk.length)) this.socket.pause();
    });
  }

  /** Whether the server has probably not closed an idle connection yet. */
  isUsable(): boolean {
    return !this.isGone && !this.socket.destroyed && this.idleMs > 0;
  }

  /** How long an idle connection may still be used. */
  get idleMs(): number {
    return Math.max(0, this.usableUntil - Date.now());
  }

  /** The connection must be idle. */
  carry(exchange: HttpExchange): void {
    this.exchange = exchange;
    exchange.carrier = this;
    this.write(exchange);
  }

  drop(exchange: HttpExchange): void {
    if (exchange === this.exchange) this.destroy();
  }

  worked(messages: number): void {
    this.messages += messages;
  }

  /** Does not notify the exchange. */
  destroy(): void {
    if (this.isGone) return;
    this.isGone = true;
    if (this.exchange !== undefined) this.exchange.carrier = undefined;
    this.exchange = undefined;
    this.parser.stop();
    clearTimeout(this.connectTimer);
    this.socket.destroy();
    this.owner.gone(this);
  }

  onHead(head: ResponseHead): void {
    this.keepAliveMs = head.keepAliveMs;
    this.exchange!.onHead(head);
  }

  onData(chunk: Buffer): void {
    this.exchange!.onData(chunk);
  }

  onEnd(leftOver: number): void {
    const exchange = this.exchange!;
    this.exchange = undefined;
    exchange.carrier = undefined;
    // A response may come before its whole request was written; the rest would precede the next request.
    const isClean = leftOver === 0 && this.socket.writableLength === 0;
    if (isClean && this.keepAliveMs > 0 && exchange.reusesConnection) {
      this.usableUntil = Date.now() + this.keepAliveMs;
      this.owner.released(this);
    } else {
      this.destroy();
    }
    try {
      exchange.onEnd();
    } catch (error) {
      // Not a failure of the connection, which may carry another exchange by now.
      exchange.onError(asError(error), false);
    }
  }

  private open({ host, port, isSecure, acceptsAnyCertificate }: Address): Socket {
    const options: TcpNetConnectOpts = {
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: TCP_PROBE_MS,
      onread: {
        buffer: () => {
          this.readBuffer ??= Buffer.allocUnsafeSlow(READ_BYTES);
          return this.readBuffer;
        },
        callback: (length, buffer) => this.receive(buffer as Buffer, length),
      },
    };
    if (!isSecure) return connectTcp(options);
    const trust = acceptsAnyCertificate ? { rejectUnauthorized: false } : {};
    return connectTls({ ...options, ...tlsOptions(host), ...trust });
  }

  private connected(vet: Address['vet']): void {
    if (vet === undefined) this.begin();
    else
      vet().then(
        () => this.begin(),
        (error: unknown) => this.fail(asError(error)),
      );
  }

  private begin(): void {
    if (this.isGone) return;
    clearTimeout(this.connectTimer);
    this.isConnected = true;
    if (this.exchange !== undefined) this.write(this.exchange);
  }

  private write(exchange: HttpExchange): void {
    const { requestHead, requestBody: body } = exchange;
    exchange.requestBody = undefined;
    this.parser.start();
    if (body === undefined) {
      this.socket.write(`${requestHead}\r\n`, 'latin1');
      return;
    }
    const length = byteLength(body);
    const head = `${requestHead}content-length: ${length}\r\n\r\n`;
    if (length <= MAX_STRING_BODY_BYTES) {
      this.socket.write(head + join(body).toString('latin1'), 'latin1');
    } else if (length <= MAX_JOINED_BODY_BYTES) {
      this.socket.write(Buffer.concat([Buffer.from(head, 'latin1'), ...body]));
    } else {
      this.socket.cork();
      this.socket.write(head, 'latin1');
      for (const chunk of body) this.socket.write(chunk);
      this.socket.uncork();
    }
  }

  private receive(bytes: Buffer, length: number): boolean {
    if (this.exchange === undefined) {
      // An idle connection got data, such as a timeout notice.
      this.destroy();
      return true;
    }
    const handsOver = length >= HAND_OVER_BYTES;
    if (handsOver) this.readBuffer = undefined;
    try {
      this.parser.push(bytes, length, !handsOver);
    } catch (error) {
      this.fail(asError(error));
    }
    if (this.messages < MESSAGES_PER_TURN) return true;
    this.messages = 0;
    setImmediate(() => this.socket.resume());
    return false;
  }

  private serverEnded(): void {
    try {
      this.parser.finish();
      this.fail(new Error('the server closed the connection'));
    } catch (error) {
      this.fail(asError(error));
    }
  }

  private fail(error: Error): void {
    if (this.isGone) return;
    const { exchange, isConnected, proxy } = this;
    this.destroy();
    const failure =
      proxy === undefined || isConnected
        ? error
        : new Error(`through the proxy ${proxy}: ${error.message}`, { cause: error });
    exchange?.onError(failure, !isConnected);
  }
}

function connectTimeout(): Error {
  return Object.assign(new Error(`no connection within ${CONNECT_MS / 1_000} s`), { code: 'ETIMEDOUT' });
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

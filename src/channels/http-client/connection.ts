import { connect as connectTcp, isIP, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { byteLength, join } from '../../protocol/jsonrpc.ts';
import type { HttpExchange } from './exchange.ts';
import type { HttpProxy } from './proxy.ts';
import { connectToProxy, openTunnel } from './proxy.ts';
import type { HeadReader, ResponseHead } from './response-head.ts';
import { ResponseParser, type ResponseSink } from './response-parser.ts';

export interface Address {
  host: string;
  port: number;
  isSecure: boolean;
  vet?: (() => Promise<void>) | undefined;
  /** What stands between us and the server. */
  proxy?: HttpProxy | undefined;
}

/** The pool, as its connections see it. */
export interface ConnectionOwner {
  /** An answer is complete; the connection can carry another exchange. */
  released(connection: Connection): void;
  gone(connection: Connection): void;
}

const CONNECT_MS = 10_000;
const TCP_PROBE_MS = 60_000;
/** After so many messages of a stream others get their turn, and the server has to wait. */
const MESSAGES_PER_TURN = 500;
const READ_BYTES = 64 * 1024;
/** A read that fills this much of the buffer takes the buffer with it; copying the others is cheaper. */
const HAND_OVER_BYTES = 32 * 1024;
/** Up to here node writes a string in one go from the stack. */
const MAX_STRING_BODY_BYTES = 12 * 1024;
const MAX_JOINED_BODY_BYTES = 64 * 1024;

/** One connection, opened for an exchange and kept for others after it. */
export class Connection implements ResponseSink {
  private readonly owner: ConnectionOwner;
  private socket: Socket;
  private readonly parser: ResponseParser;
  private readonly patience: NodeJS.Timeout;
  private readBuffer: Buffer | undefined;
  private exchange: HttpExchange | undefined;
  private keepAliveMs = 0;
  /** What stands between us and the server. */
  private readonly proxy: string | undefined;
  private isConnected = false;
  private isGone = false;
  private usableUntil = 0;
  /** How many messages were dealt with since others had their turn. */
  private messages = 0;

  constructor(address: Address, heads: HeadReader, owner: ConnectionOwner, first: HttpExchange) {
    this.owner = owner;
    this.parser = new ResponseParser(this, heads);
    this.exchange = first;
    first.carrier = this;
    this.patience = setTimeout(() => this.fail(connectTimeout()), CONNECT_MS);
    const { proxy, isSecure } = address;
    this.proxy = proxy?.label;
    this.socket = proxy === undefined ? this.open(address) : connectToProxy(proxy);
    if (proxy === undefined) this.watch(isSecure, () => this.connected(address.vet));
    else this.watch(proxy.isSecure, () => this.reachThrough(proxy, address));
  }

  private watch(isSecure: boolean, connected: () => void): void {
    const { socket } = this;
    // That of a tunnel is watched no longer when TLS goes through it.
    const ifOurs = (work: () => void) => {
      if (this.socket === socket) work();
    };
    socket.once(isSecure ? 'secureConnect' : 'connect', connected);
    socket.on('error', (error) => ifOurs(() => this.fail(error)));
    socket.on('end', () => ifOurs(() => this.peerEnded()));
    socket.on('close', () => ifOurs(() => this.fail(new Error('the connection was closed'))));
  }

  /** A server without TLS is spoken to by the proxy; to one with it, the proxy only passes on what is said. */
  private reachThrough(proxy: HttpProxy, address: Address): void {
    if (!address.isSecure) {
      this.readPlainly();
      this.connected(address.vet);
      return;
    }
    openTunnel(this.socket, proxy, address, (error) => {
      if (error !== undefined || this.isGone) {
        this.fail(error ?? new Error('the connection was closed'));
        return;
      }
      this.socket = connectTls({ socket: this.socket, ...securityOf(address.host) });
      this.readPlainly();
      this.watch(true, () => this.connected(address.vet));
    });
  }

  /** Where the socket is not one that reads into our own buffer. */
  private readPlainly(): void {
    this.socket.on('data', (chunk: Buffer) => {
      if (!this.receive(chunk, chunk.length)) this.socket.pause();
    });
  }

  /** Whether an idle one can be expected to be open still. */
  isUsable(): boolean {
    return !this.isGone && !this.socket.destroyed && this.idleMs > 0;
  }

  /** For how long an idle one may still be used. */
  get idleMs(): number {
    return Math.max(0, this.usableUntil - Date.now());
  }

  /** Carries this exchange. Only for a connection that is idle. */
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

  /** Ends it without a word. */
  destroy(): void {
    if (this.isGone) return;
    this.isGone = true;
    if (this.exchange !== undefined) this.exchange.carrier = undefined;
    this.exchange = undefined;
    this.parser.stop();
    clearTimeout(this.patience);
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
    // An answer may come before all of its request was taken: what is left of that would stand before the next one.
    const isClean = leftOver === 0 && this.socket.writableLength === 0;
    if (isClean && this.keepAliveMs > 0 && exchange.leavesConnection) {
      this.usableUntil = Date.now() + this.keepAliveMs;
      this.owner.released(this);
    } else {
      this.destroy();
    }
    try {
      exchange.onEnd();
    } catch (error) {
      // The connection may carry another exchange by now, which has no part in it.
      exchange.onError(asError(error), false);
    }
  }

  private open({ host, port, isSecure }: Address): Socket {
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
    return connectTls({ ...options, ...securityOf(host) });
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
    clearTimeout(this.patience);
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
      // Nobody asked: a timeout's notice, or the rest of an answer that nobody wants.
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

  private peerEnded(): void {
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
    const isOfWay = proxy !== undefined && !isConnected;
    exchange?.onError(isOfWay ? throughError(proxy, error) : error, !isConnected);
  }
}

function securityOf(host: string): { servername?: string; ALPNProtocols: string[] } {
  return { ...(isIP(host) === 0 ? { servername: host } : {}), ALPNProtocols: ['http/1.1'] };
}

function throughError(proxy: string, error: Error): Error {
  return new Error(`through the proxy ${proxy}: ${error.message}`, { cause: error });
}

function connectTimeout(): Error {
  return Object.assign(new Error(`no connection within ${CONNECT_MS / 1_000} s`), { code: 'ETIMEDOUT' });
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

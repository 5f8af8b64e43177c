import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as immediately } from 'node:timers/promises';
import { SwitchboardError } from '../../errors.ts';
import { Handshakes } from './handshakes.ts';
import { wholeResponse } from './whole-response.ts';

export interface ConnectionLimits {
  maxConnections: number;
  slowClientMs: number;
}

export const LEAST_BYTES_PER_SECOND = 16 * 1024;
const REFUSED_MS = 1_000;
const MAX_REFUSED = 100;
/** How long a connection without a key is left alone if there are too many. */
const STRANGER_MS = 1_000;
const MIN_HANDSHAKES = 100;
/** How many pipelined requests may be queued, and how many bytes of their responses are exempt from the minimum rate. */
const MAX_QUEUED = 100;
const FREE_QUEUED_BYTES = 64 * 1024;

interface Users {
  /** Whether the system can identify the user of a connection. */
  tellsUsers: boolean;
  /** Whether a request can make its connection one that is admitted. */
  vouches: boolean;
  ask(socket: Socket): boolean | Promise<boolean>;
}

type Refuse = (response: ServerResponse, error: SwitchboardError) => void;

interface Client {
  /** Of the latest request, while its body may be incomplete. */
  response: ServerResponse | undefined;
  /** The bytes received at the last check. */
  read: number | undefined;
  /** How much the client has to read, and by when. */
  unread: { until: number; deadline: number } | undefined;
  /** Responses queued behind an earlier one, such as an event stream. */
  queued: Set<ServerResponse> | undefined;
}

/**
 * Limits the connections of clients, reserves half of them for our own user and for those with keys, and closes those that send
 * or read too slowly. Idle connections, such as those of event streams, may stay open.
 */
export class ClientConnections {
  private readonly limits: ConnectionLimits;
  private readonly refuse: Refuse;
  private readonly bytesPerMs: number;
  private readonly clients = new Map<Socket, Client>();
  private readonly timer: NodeJS.Timeout;
  private readonly users: Users;
  /** Connections that may belong to other users, oldest first, and since when. */
  private readonly strangers = new Map<Socket, number>();
  private readonly maxStrangers: number;
  private turnedAway = 0;

  constructor(
    server: Server,
    limits: ConnectionLimits,
    users: Users,
    refuse: Refuse,
    leastBytesPerSecond = LEAST_BYTES_PER_SECOND,
  ) {
    this.limits = limits;
    this.users = users;
    this.maxStrangers = users.tellsUsers ? Math.ceil(limits.maxConnections / 2) : limits.maxConnections;
    this.refuse = refuse;
    this.bytesPerMs = leastBytesPerSecond / 1_000;
    server.maxConnections = limits.maxConnections + 2 * MAX_REFUSED;
    const isEncrypted = server.listenerCount('secureConnection') > 0;
    // With TLS, a client's connection begins after the handshake.
    const event = isEncrypted ? 'secureConnection' : 'connection';
    const listeners = server.listeners(event);
    server.removeAllListeners(event);
    const accept = (socket: Socket) => {
      for (const listener of listeners) listener.call(server, socket);
    };
    server.on(event, (socket: Socket) => {
      if (this.strangers.size >= this.maxStrangers && !this.makeRoom()) {
        void this.acceptOwn(socket, accept);
      } else if (this.add(socket)) {
        this.strangers.set(socket, performance.now());
        accept(socket);
      }
    });
    if (isEncrypted) new Handshakes(server, Math.max(this.maxStrangers, MIN_HANDSHAKES));
    this.timer = setInterval(() => this.checkAll(), limits.slowClientMs).unref();
  }

  admitted(socket: Socket): void {
    this.strangers.delete(socket);
  }

  /** Call when a request begins. False if the request must be ignored. */
  began(response: ServerResponse): boolean {
    const { socket } = response.req;
    const client = this.clients.get(socket);
    if (client === undefined) return false;
    client.response = response;
    client.read = undefined;
    // A pipelined response has no socket before its turn.
    if (response.socket === null) enqueue(client, response);
    // Requests that were read together with one too many still arrive.
    return !socket.destroyed;
  }

  async flushed(limitMs: number): Promise<void> {
    // Recent writes are still buffered.
    await immediately();
    const full = [...this.clients.keys()].filter(({ writableLength }) => writableLength > 0);
    if (limitMs === 0 || full.length === 0) return;
    const over = AbortSignal.timeout(limitMs);
    await Promise.all(full.map((socket) => untilFlushed(socket, over)));
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** Other users are at their limit, so nothing is read until the system has identified the user. */
  private async acceptOwn(socket: Socket, accept: (socket: Socket) => void): Promise<void> {
    const ignore = () => {};
    socket.on('error', ignore);
    const isOwn = await this.users.ask(socket);
    if (socket.destroyed) return;
    if (!isOwn) {
      const { maxConnections } = this.limits;
      const who = this.users.vouches ? 'Clients that have not sent a key' : 'Other users';
      this.turnAway(
        socket,
        `${who} have ${this.maxStrangers} connections, and may have no more (half of the setting maxConnections, ${maxConnections}).`,
      );
      return;
    }
    if (!this.add(socket)) return;
    socket.off('error', ignore);
    accept(socket);
  }

  /** A client with a key is no stranger after its first request, so that old strangers have none. */
  private makeRoom(): boolean {
    const [oldest] = this.strangers;
    if (!this.users.vouches || oldest === undefined) return false;
    const [socket, since] = oldest;
    if (performance.now() - since < STRANGER_MS) return false;
    this.forget(socket);
    socket.destroy();
    return true;
  }

  private add(socket: Socket): boolean {
    const { maxConnections } = this.limits;
    if (this.clients.size >= maxConnections) {
      this.turnAway(socket, `All ${maxConnections} connections are in use (setting maxConnections).`);
      return false;
    }
    const client = { response: undefined, read: undefined, unread: undefined, queued: undefined };
    this.clients.set(socket, client);
    socket.once('close', () => this.forget(socket));
    return true;
  }

  private forget(socket: Socket): void {
    this.clients.delete(socket);
    this.strangers.delete(socket);
  }

  private turnAway(socket: Socket, why: string): void {
    if (this.turnedAway >= MAX_REFUSED) {
      socket.destroy();
      return;
    }
    this.turnedAway++;
    socket.once('close', () => this.turnedAway--);
    explain(socket, why);
  }

  private checkAll(): void {
    const now = performance.now();
    for (const [socket, client] of this.clients) {
      this.checkBody(socket, client);
      this.checkUnread(socket, client, now);
    }
  }

  private checkBody({ bytesRead }: Socket, client: Client): void {
    const { response, read } = client;
    if (response === undefined) return;
    const isSlow = read !== undefined && bytesRead - read < this.limits.slowClientMs * this.bytesPerMs;
    client.read = bytesRead;
    if (!response.req.complete && !isSlow) return;
    client.response = undefined;
    if (!response.req.complete) this.giveUp(response);
  }

  private giveUp(response: ServerResponse): void {
    // The response began before the whole request arrived.
    if (response.headersSent) {
      response.req.socket.destroy();
      return;
    }
    response.req.removeAllListeners('data');
    response.req.removeAllListeners('end');
    this.refuse(
      response,
      new SwitchboardError('request_timeout', 'The body of the request arrived too slowly.'),
    );
  }

  private checkUnread(socket: Socket, client: Client, now: number): void {
    const unread = socket.writableLength + queuedBytes(client);
    if (unread === 0) {
      client.unread = undefined;
      return;
    }
    const taken = socket.bytesWritten - socket.writableLength;
    if (client.unread === undefined || taken >= client.unread.until) {
      const deadline = now + this.limits.slowClientMs + unread / this.bytesPerMs;
      client.unread = { until: taken + unread, deadline };
    } else if (now >= client.unread.deadline) {
      socket.destroy();
    }
  }
}

function untilFlushed(socket: Socket, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
    // Queued after all other data; `drain` is emitted only above the high-water mark.
    socket.write('', () => resolve());
    over.addEventListener('abort', () => resolve());
  });
}

function enqueue(client: Client, response: ServerResponse): void {
  client.queued ??= new Set();
  client.queued.add(response);
  if (client.queued.size <= MAX_QUEUED) return;
  forgetSent(client.queued);
  if (client.queued.size > MAX_QUEUED) response.req.socket.destroy();
}

function queuedBytes({ queued }: Client): number {
  if (queued === undefined) return 0;
  forgetSent(queued);
  let bytes = 0;
  for (const { writableLength } of queued) bytes += writableLength;
  return bytes > FREE_QUEUED_BYTES ? bytes : 0;
}

function forgetSent(queued: Set<ServerResponse>): void {
  for (const response of queued) {
    if (response.socket !== null || response.writableFinished) queued.delete(response);
  }
}

function explain(socket: Socket, why: string): void {
  socket.on('error', () => {});
  socket.end(wholeResponse(new SwitchboardError('too_many_connections', why)));
  // Unread data would reset the connection, and the error could be lost.
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), REFUSED_MS).unref();
  socket.once('close', () => clearTimeout(timer));
}

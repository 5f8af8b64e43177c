import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as immediately } from 'node:timers/promises';
import { SwitchboardError } from '../../errors.ts';
import { errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';

export interface ConnectionLimits {
  maxConnections: number;
  /** So long a client may take for the head of a request, and be slower than it has to be. */
  slowClientMs: number;
}

/** How fast a client has to send a body, and to take what it is sent. */
export const LEAST_BYTES_PER_SECOND = 16 * 1024;
/** Connections over the limit are kept for so long, and so many of them, that they can read why they are closed. */
const REFUSED_MS = 1_000;
const MAX_REFUSED = 100;
/** Requests that a client sends before those in front of them are answered: so many, and so much of their answers for any time. */
const MAX_WAITING = 100;
const FREE_WAITING_BYTES = 64 * 1024;

/** Knows whether our own user is at the other end of a connection. */
interface Users {
  /** Whether the system tells that. */
  tellsUsers: boolean;
  ask(socket: Socket): boolean | Promise<boolean>;
}

/** Answers a request that is given up. */
type Refuse = (response: ServerResponse, error: SwitchboardError) => void;

interface Client {
  /** To its latest request, as long as the body of that may be missing. */
  response: ServerResponse | undefined;
  /** How many bytes had come when it was looked at last. */
  read: number | undefined;
  /** What it has to take, and by when. */
  unread: { until: number; deadline: number } | undefined;
  /** Answers that cannot leave before one in front of them is over, such as an event stream. */
  waiting: Set<ServerResponse> | undefined;
}

/**
 * The connections of clients: so many, half of them at the most of other users than our own, and none that is held by a
 * client that sends or reads next to nothing. A connection on which nothing is awaited, such as that of an event stream, may
 * be idle for as long as it likes.
 */
export class Connections {
  private readonly limits: ConnectionLimits;
  private readonly refuse: Refuse;
  private readonly bytesPerMs: number;
  private readonly clients = new Map<Socket, Client>();
  private readonly timer: NodeJS.Timeout;
  private readonly users: Users;
  /** Those that may be of others; there is always room for our own user beside them. */
  private readonly strangers = new Set<Socket>();
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
    const listeners = server.listeners('connection');
    server.removeAllListeners('connection');
    const accept = (socket: Socket) => {
      for (const listener of listeners) listener.call(server, socket);
    };
    server.on('connection', (socket) => {
      if (this.strangers.size >= this.maxStrangers) {
        void this.acceptOwn(socket, accept);
      } else if (this.add(socket)) {
        this.strangers.add(socket);
        accept(socket);
      }
    });
    this.timer = setInterval(() => this.look(), limits.slowClientMs).unref();
  }

  /** Our own user is at the other end. */
  admitted(socket: Socket): void {
    this.strangers.delete(socket);
  }

  /** A request has begun: its head is there, its body may follow. False where nothing is to be done for it. */
  began(response: ServerResponse): boolean {
    const { socket } = response.req;
    const client = this.clients.get(socket);
    if (client === undefined) return false;
    client.response = response;
    client.read = undefined;
    // It has none before its turn.
    if (response.socket === null) wait(client, response);
    // What was read together with the one too many comes all the same.
    return !socket.destroyed;
  }

  /** Settles when all that was written has left, or the time is over. */
  async flushed(limitMs: number): Promise<void> {
    // What was written a moment ago is still gathered.
    await immediately();
    const full = [...this.clients.keys()].filter(({ writableLength }) => writableLength > 0);
    if (limitMs === 0 || full.length === 0) return;
    const over = AbortSignal.timeout(limitMs);
    await Promise.all(full.map((socket) => emptied(socket, over)));
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** Of others there are enough. Until the system has told who it is, nothing of what it sends is looked at. */
  private async acceptOwn(socket: Socket, accept: (socket: Socket) => void): Promise<void> {
    const ignore = () => {};
    socket.on('error', ignore);
    const isOwn = await this.users.ask(socket);
    if (socket.destroyed) return;
    if (!isOwn) {
      const { maxConnections } = this.limits;
      this.turnAway(
        socket,
        `Others than the user that runs Switchboard have ${this.maxStrangers} connections already, and may have no more (half of the setting maxConnections, ${maxConnections}).`,
      );
      return;
    }
    if (!this.add(socket)) return;
    socket.off('error', ignore);
    accept(socket);
  }

  /** False where there are too many. */
  private add(socket: Socket): boolean {
    const { maxConnections } = this.limits;
    if (this.clients.size >= maxConnections) {
      this.turnAway(socket, `There are ${maxConnections} connections already (setting maxConnections).`);
      return false;
    }
    const client = { response: undefined, read: undefined, unread: undefined, waiting: undefined };
    this.clients.set(socket, client);
    socket.once('close', () => {
      this.clients.delete(socket);
      this.strangers.delete(socket);
    });
    return true;
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

  private look(): void {
    const now = performance.now();
    for (const [socket, client] of this.clients) {
      this.lookAtBody(socket, client);
      this.lookAtUnread(socket, client, now);
    }
  }

  private lookAtBody({ bytesRead }: Socket, client: Client): void {
    const { response, read } = client;
    if (response === undefined) return;
    const isSlow = read !== undefined && bytesRead - read < this.limits.slowClientMs * this.bytesPerMs;
    client.read = bytesRead;
    if (!response.req.complete && !isSlow) return;
    client.response = undefined;
    if (!response.req.complete) this.giveUp(response);
  }

  private giveUp(response: ServerResponse): void {
    // Where it was answered before all of it came, there is no more to say.
    if (response.headersSent) {
      response.req.socket.destroy();
      return;
    }
    response.req.removeAllListeners('data');
    response.req.removeAllListeners('end');
    this.refuse(
      response,
      new SwitchboardError(
        'request_timeout',
        'The body of the request came too slowly, and was not awaited.',
      ),
    );
  }

  private lookAtUnread(socket: Socket, client: Client, now: number): void {
    const unread = socket.writableLength + waitingBytes(client);
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

function emptied(socket: Socket, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
    // Behind everything else; a `drain` comes only where there was too much.
    socket.write('', () => resolve());
    over.addEventListener('abort', () => resolve());
  });
}

function wait(client: Client, response: ServerResponse): void {
  client.waiting ??= new Set();
  client.waiting.add(response);
  if (client.waiting.size <= MAX_WAITING) return;
  forgetSent(client.waiting);
  if (client.waiting.size > MAX_WAITING) response.req.socket.destroy();
}

function waitingBytes({ waiting }: Client): number {
  if (waiting === undefined) return 0;
  forgetSent(waiting);
  let bytes = 0;
  for (const { writableLength } of waiting) bytes += writableLength;
  return bytes > FREE_WAITING_BYTES ? bytes : 0;
}

/** Those whose turn has come. */
function forgetSent(waiting: Set<ServerResponse>): void {
  for (const response of waiting) {
    if (response.socket !== null || response.writableFinished) waiting.delete(response);
  }
}

/** Answers before anything was asked, and closes. */
function explain(socket: Socket, why: string): void {
  const error = new SwitchboardError('too_many_connections', why);
  const body = errorMessage(undefined, toRpcError(error));
  const head = [
    `HTTP/1.1 ${error.kind.http} Service Unavailable`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    'connection: close',
  ];
  socket.on('error', () => {});
  socket.end(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
  // What it has sent is read, or the refusal could be lost with it.
  socket.resume();
  const patience = setTimeout(() => socket.destroy(), REFUSED_MS).unref();
  socket.once('close', () => clearTimeout(patience));
}

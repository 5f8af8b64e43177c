import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { SwitchboardError } from '../../../errors.ts';

/** The engine cannot be reached, or does not answer. */
export class EngineAway extends SwitchboardError {
  constructor(message: string, cause?: unknown) {
    super('server_unavailable', message, { cause });
  }
}

/** Its message may quote the request. */
export class EngineRefusal extends SwitchboardError {
  readonly status: number;

  constructor(status: number, message: string) {
    super('server_start_failed', message);
    this.status = status;
  }
}

export interface Ask {
  query?: Record<string, string>;
  body?: unknown;
  /** Until the response begins. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

export interface Hijacked {
  socket: Duplex;
  /** The first bytes of the stream, which arrived with the response. */
  head: Buffer;
}

const ANSWER_MS = 30_000;
const BODY_MS = 30_000;

/** A client of the Docker API. Paths have no version, because new engines refuse old versions and these calls are stable. */
export class Engine {
  /** For messages. */
  readonly name: string;
  readonly socketPath: string | undefined;
  private readonly address: Address;

  constructor(address: string) {
    this.address = readAddress(address);
    this.name = this.address.name;
    this.socketPath = socketPathOf(this.address);
  }

  async get<Answer>(path: string, ask: Ask = {}): Promise<Answer> {
    return (await this.json('GET', path, ask)) as Answer;
  }

  async post<Answer = void>(path: string, ask: Ask = {}): Promise<Answer> {
    return (await this.json('POST', path, ask)) as Answer;
  }

  async delete(path: string, ask: Ask = {}): Promise<void> {
    await this.json('DELETE', path, ask);
  }

  /** Resolves when the response begins. The caller reads the body. */
  async stream(method: string, path: string, ask: Ask = {}): Promise<IncomingMessage> {
    const answer = await this.ask(method, path, ask);
    if (!('response' in answer))
      throw new EngineAway(`${this.called} closed the connection of ${method} ${path}.`);
    return answer.response;
  }

  /** Returns the raw connection after an HTTP upgrade. */
  async hijack(path: string, ask: Ask = {}): Promise<Hijacked> {
    const answer = await this.ask('POST', path, ask, { connection: 'Upgrade', upgrade: 'tcp' });
    if ('socket' in answer) return answer;
    answer.response.destroy();
    throw new EngineAway(`${this.called} did not upgrade the connection of ${path}.`);
  }

  private async json(method: string, path: string, ask: Ask): Promise<unknown> {
    const response = await this.stream(method, path, ask);
    const timer = setTimeout(() => response.destroy(), BODY_MS);
    try {
      const body = await text(response);
      return body.trim() === '' ? undefined : JSON.parse(body);
    } catch (error) {
      ask.signal?.throwIfAborted();
      throw new EngineAway(
        `${this.called} closed the connection during its response to ${method} ${path}.`,
        error,
      );
    } finally {
      clearTimeout(timer);
    }
  }

  private async ask(
    method: string,
    path: string,
    { query, body, timeoutMs = ANSWER_MS, signal }: Ask,
    headers: Record<string, string> = {},
  ): Promise<{ response: IncomingMessage } | Hijacked> {
    if ('problem' in this.address) throw new EngineAway(this.address.problem);
    signal?.throwIfAborted();
    const content = body === undefined ? undefined : JSON.stringify(body);
    const search = query === undefined ? '' : `?${new URLSearchParams(query)}`;
    const answer = await this.send(
      {
        ...this.address.connect,
        method,
        path: `${path}${search}`,
        headers: {
          host: 'docker',
          ...(content === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }),
          ...headers,
        },
        // A kept-alive connection would be dead after the engine restarts.
        agent: false,
        ...(signal === undefined ? {} : { signal }),
      },
      content,
      timeoutMs,
    );
    if (!('response' in answer)) return answer;
    const { response } = answer;
    if (response.statusCode! < 400) return answer;
    throw new EngineRefusal(response.statusCode!, await messageOf(response));
  }

  private send(options: RequestOptions, content: string | undefined, timeoutMs: number) {
    return new Promise<{ response: IncomingMessage } | Hijacked>((resolve, reject) => {
      const outgoing = request(options);
      const timer = setTimeout(() => {
        outgoing.destroy(new Error(`no response within ${timeoutMs / 1_000} s`));
      }, timeoutMs);
      outgoing.on('response', (response) => {
        clearTimeout(timer);
        // The reader gets the error too.
        response.on('error', () => {});
        resolve({ response });
      });
      outgoing.on('upgrade', (_response, socket, head) => {
        clearTimeout(timer);
        resolve({ socket, head });
      });
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        reject(options.signal?.aborted ? options.signal.reason : this.away(error));
      });
      outgoing.end(content);
    });
  }

  private away(error: NodeJS.ErrnoException): EngineAway {
    const why =
      error.code === 'EACCES' || error.code === 'EPERM'
        ? 'permission denied: add the user to the group "docker" and log in again, or run Switchboard as a user with access'
        : error.code === 'ENOENT'
          ? `the socket does not exist. ${HOW_TO_START}`
          : error.code === 'ECONNREFUSED'
            ? `the connection was refused. ${HOW_TO_START}`
            : error.message;
    return new EngineAway(`${this.called} cannot be reached: ${why.replace(/\.?$/, '.')}`, error);
  }

  private get called(): string {
    return `The Docker engine at ${this.name}`;
  }
}

function socketPathOf(address: Address): string | undefined {
  return 'connect' in address && 'socketPath' in address.connect ? address.connect.socketPath : undefined;
}

const HOW_TO_START =
  'Start Docker (sudo systemctl start docker), or set its address with DOCKER_HOST or the setting `hosting.engine`';

async function messageOf(response: IncomingMessage): Promise<string> {
  const body = await text(response).catch(() => '');
  try {
    return String((JSON.parse(body) as { message: unknown }).message).trim();
  } catch {
    return body.trim() || `HTTP status ${response.statusCode}`;
  }
}

type Address =
  | { name: string; connect: { socketPath: string } | { host: string; port: number } }
  | { name: string; problem: string };

const LOOPBACK = /^(127(\.\d+){3}|localhost|\[::1\])$/;

/** Accepts a socket path, with or without `unix://`, or `tcp://127.0.0.1:2375`. */
export function readAddress(text: string): Address {
  if (!text.includes('://')) return ofSocket(text);
  if (text.startsWith('unix://')) return ofSocket(text.slice('unix://'.length));
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'tcp:' && LOOPBACK.test(url.hostname)) {
    const host = url.hostname.replace(/^\[|\]$/g, '');
    return { name: text, connect: { host, port: Number(url.port || 2375) } };
  }
  // A remote engine would publish ports on its own machine, and anyone who reaches it could use it.
  const problem = `The Docker engine at ${withoutUser(text)} cannot be used: the engine must run on this machine, at a socket such as unix:///var/run/docker.sock or at tcp://127.0.0.1:2375. Set DOCKER_HOST or the setting \`hosting.engine\` to such an address.`;
  return { name: withoutUser(text), problem };
}

function ofSocket(path: string): Address {
  return { name: path, connect: { socketPath: path } };
}

function withoutUser(text: string): string {
  return text.replace(/:\/\/[^/]*@/, '://');
}

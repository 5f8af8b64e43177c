import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  request as requestHttp,
  type Server,
  type ServerResponse,
} from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { InstanceSpec } from '../../src/hosting/driver.ts';
import { UsageMeter } from '../../src/hosting/drivers/process/usage-meter.ts';
import { freePort } from '../helpers/free-port.ts';
import { Inbox } from '../helpers/inbox.ts';
import { fixtureProgram } from '../helpers/programs.ts';
import { specOf } from './contract.ts';
import { Envd } from './e2b-envd.ts';

interface NewSandbox {
  templateID: string;
  metadata?: Record<string, string>;
  envVars?: Record<string, string>;
  timeout?: number;
  allow_internet_access?: boolean;
  network?: { allowPublicTraffic?: boolean };
}

interface SeenRequest {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
}

interface Refusal {
  status: number;
  message: string;
}

/** A server in a sandbox that runs a program of test/fixtures. */
export function sandboxed(fixture: string, more: Partial<InstanceSpec> = {}): InstanceSpec {
  const program = fixtureProgram(fixture);
  return specOf({
    image: 'node',
    command: process.execPath,
    ...more,
    args: [program, ...(more.args ?? [])],
  });
}

const ENVD_PORT = '49983';
/** Old templates run nothing without an explicit user. */
const TEMPLATES = ['node', 'old'];
const PAGE = 2;

class Sandbox {
  readonly id = `i${randomBytes(10).toString('hex')}`;
  readonly envdToken = randomUUID();
  readonly trafficToken = randomUUID();
  readonly startedAt = new Date();
  readonly wish: NewSandbox;
  readonly envd: Envd;
  private readonly meters = new Map<number, UsageMeter>();
  endAt = new Date();
  private end: NodeJS.Timeout | undefined;

  constructor(wish: NewSandbox) {
    this.wish = wish;
    this.envd = new Envd(wish.envVars ?? {}, { isOld: wish.templateID === 'old' });
  }

  live(seconds: number, onEnd: () => void): void {
    clearTimeout(this.end);
    this.endAt = new Date(Date.now() + seconds * 1_000);
    this.end = setTimeout(onEnd, seconds * 1_000).unref();
  }

  async kill(): Promise<void> {
    clearTimeout(this.end);
    await this.envd.kill();
  }

  get info() {
    const { templateID, metadata } = this.wish;
    const times = { startedAt: this.startedAt, endAt: this.endAt };
    const sizes = { cpuCount: 2, memoryMB: 512, diskSizeMB: 1024 };
    return { ...this.names, templateID, alias: templateID, metadata, state: 'running', ...times, ...sizes };
  }

  get access() {
    const tokens = { envdAccessToken: this.envdToken, trafficAccessToken: this.trafficToken };
    return { ...this.names, templateID: this.wish.templateID, ...tokens, domain: null };
  }

  async measure() {
    const usages = await Promise.all(
      this.envd.pids.map((pid) => {
        const meter = this.meters.get(pid) ?? new UsageMeter(pid);
        this.meters.set(pid, meter);
        return meter.read();
      }),
    );
    const percent = usages.reduce((sum, { cpuPercent }) => sum + (cpuPercent ?? 0), 0);
    const memUsed = usages.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
    const disk = { diskUsed: 1024 ** 2, diskTotal: 1024 ** 3 };
    const memory = { memUsed, memTotal: 512 * 1024 ** 2, memCache: 0 };
    return { timestamp: new Date(), cpuCount: 2, cpuUsedPct: percent / 2, ...memory, ...disk };
  }

  private get names() {
    return { sandboxID: this.id, clientID: 'somewhere', envdVersion: '0.6.0' };
  }
}

/** A stand-in for E2B on loopback. Its sandboxes are reached by headers and isolate nothing, but run real processes. */
export class E2bApi implements AsyncDisposable {
  readonly apiKey = `e2b_${randomBytes(20).toString('hex')}`;
  readonly seen = new Inbox<SeenRequest>();
  readonly sandboxes = new Map<string, Sandbox>();
  private readonly server: Server;
  private readonly refusals: Refusal[] = [];
  private port = 0;

  private constructor() {
    this.server = createServer((request, response) => {
      this.answer(request, response).catch((error) => response.destroy(error));
    });
  }

  static async start(): Promise<E2bApi> {
    const api = new E2bApi();
    await api.comeBack();
    return api;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  refuseNext(status: number, message: string): void {
    this.refusals.push({ status, message });
  }

  async endSandbox(id: string): Promise<boolean> {
    const sandbox = this.sandboxes.get(id);
    this.sandboxes.delete(id);
    await sandbox?.kill();
    return sandbox !== undefined;
  }

  /** Cuts pending requests and accepts no new ones; the sandboxes keep running. */
  async goAway(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  async comeBack(): Promise<void> {
    if (this.port === 0) this.port = await freePort();
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.sandboxes.keys()].map((id) => this.endSandbox(id)));
    if (this.server.listening) await this.goAway();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = request;
    const id = headers['e2b-sandbox-id'];
    if (id !== undefined && headers['e2b-sandbox-port'] !== ENVD_PORT)
      return this.intoSandbox(this.sandboxes.get(String(id)), request, response);
    const body = await buffer(request);
    // Input to servers is long, and tests know it anyway.
    this.seen.add({ method, path, headers, body: path.endsWith('SendInput') ? '' : body.toString() });
    if (id !== undefined) return this.toEnvd(this.sandboxes.get(String(id)), body, request, response);
    const refusal = this.refusals.shift();
    if (refusal !== undefined) return fail(response, refusal.status, refusal.message);
    if (headers['x-api-key'] !== this.apiKey) return fail(response, 401, 'Invalid API key');
    await this.control(method, new URL(path, this.url), body.toString(), response);
  }

  private async toEnvd(
    sandbox: Sandbox | undefined,
    body: Buffer,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (sandbox === undefined) return fail(response, 502, 'The sandbox was not found');
    if (request.headers['x-access-token'] !== sandbox.envdToken) return fail(response, 401, 'wrong token');
    const method = /^\/process\.Process\/(\w+)$/.exec(request.url ?? '')?.[1];
    if (method !== undefined) await sandbox.envd.handle(method, body, request, response);
    else if (request.url === '/health') response.writeHead(204).end();
    else fail(response, 404, 'no such path');
  }

  private intoSandbox(sandbox: Sandbox | undefined, request: IncomingMessage, response: ServerResponse) {
    if (sandbox === undefined) return fail(response, 502, 'The sandbox was not found');
    const isOpen = sandbox.wish.network?.allowPublicTraffic !== false;
    if (!isOpen && request.headers['e2b-traffic-access-token'] !== sandbox.trafficToken)
      return fail(response, 403, 'The sandbox is not open to the public');
    const { method, url: path, headers } = request;
    const port = Number(headers['e2b-sandbox-port']);
    const inner = requestHttp({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    inner.on('error', () => fail(response, 502, 'The sandbox is running but port is not open'));
    request.pipe(inner);
  }

  private async control(method: string, url: URL, body: string, response: ServerResponse): Promise<void> {
    const route = `${method} ${url.pathname.replace(/(?<=\/sandboxes\/)[^/]+/, ':id')}`;
    if (route === 'POST /v2/sandboxes') return this.create(JSON.parse(body), response);
    if (route === 'GET /v2/sandboxes') return this.list(url.searchParams, response);
    const sandbox = this.sandboxes.get(/\/sandboxes\/([^/]+)/.exec(url.pathname)?.[1] ?? '');
    if (sandbox === undefined) return fail(response, 404, 'sandbox not found');
    if (route === 'GET /sandboxes/:id') return send(response, 200, sandbox.info);
    if (route === 'GET /sandboxes/:id/metrics') return send(response, 200, [await sandbox.measure()]);
    if (route === 'POST /sandboxes/:id/timeout') {
      this.extend(sandbox, body);
      return send(response, 204);
    }
    if (route === 'POST /v2/sandboxes/:id/connect') {
      this.extend(sandbox, body);
      return send(response, 200, sandbox.access);
    }
    if (route !== 'DELETE /sandboxes/:id') return fail(response, 404, 'no such path');
    await this.endSandbox(sandbox.id);
    send(response, 204);
  }

  private create(wish: NewSandbox, response: ServerResponse) {
    if (!TEMPLATES.includes(wish.templateID))
      return fail(response, 404, `template '${wish.templateID}' not found`);
    const sandbox = new Sandbox(wish);
    this.sandboxes.set(sandbox.id, sandbox);
    this.extend(sandbox, JSON.stringify(wish));
    send(response, 201, sandbox.access);
  }

  private list(query: URLSearchParams, response: ServerResponse): void {
    const wanted = [...new URLSearchParams(query.get('metadata') ?? '')].map((pair) =>
      pair.map(decodeURIComponent),
    );
    const found = [...this.sandboxes.values()].filter(({ wish }) =>
      wanted.every(([key = '', value]) => wish.metadata?.[key] === value),
    );
    const start = Number(query.get('nextToken') ?? 0);
    const end = start + PAGE;
    if (end < found.length) response.setHeader('x-next-token', String(end));
    const page = found.slice(start, end);
    send(
      response,
      200,
      page.map(({ info }) => info),
    );
  }

  private extend(sandbox: Sandbox, body: string): void {
    const { timeout = 300 } = JSON.parse(body) as { timeout?: number };
    sandbox.live(timeout, () => this.endSandbox(sandbox.id));
  }
}

function send(response: ServerResponse, status: number, body?: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}

function fail(response: ServerResponse, status: number, message: string): void {
  send(response, status, { code: status, message });
}

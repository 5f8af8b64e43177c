import type { IncomingMessage, ServerResponse } from 'node:http';
import { fields } from '../../config/fields.ts';
import { SwitchboardError } from '../../errors.ts';
import type { Backend } from '../backend.ts';
import { callRoutes } from '../calls.ts';
import { chatRoutes } from '../chat.ts';
import { EventFeed } from '../events.ts';
import { hostedRoutes } from '../hosted.ts';
import { HostedLogs } from '../hosted-logs.ts';
import { importRoutes } from '../imports.ts';
import { openapiRoute } from '../openapi-route.ts';
import { productRoutes } from '../products.ts';
import { projectRoutes } from '../projects.ts';
import { secretRoutes } from '../secrets.ts';
import { serverRoutes } from '../servers.ts';
import { statusRoutes } from '../status.ts';
import { toolRoutes } from '../tools.ts';
import { checkMediaType, parseBody, readText } from './body.ts';
import { check } from './check.ts';
import { invalidInput } from './problems.ts';
import { versionOf } from './reply.ts';
import type { Reply, Route } from './route.ts';
import { RouteTable } from './route-table.ts';
import { MethodRefusal, send, sendRefusal } from './send.ts';

const BASE = '/api/v1';
const nothing = fields({});

/** Finds who answers a request, hands over what was checked, and sends the answer. */
export class Router {
  readonly routes: readonly Route[];
  private readonly table: RouteTable;
  private readonly feed: EventFeed;
  private readonly hostedLogs: HostedLogs;
  private readonly onFault: (thrown: unknown) => void;

  constructor(backend: Backend, onFault: (thrown: unknown) => void) {
    this.onFault = onFault;
    this.feed = new EventFeed(backend);
    this.hostedLogs = new HostedLogs(backend.hosted);
    const routes = [
      ...statusRoutes(backend),
      ...projectRoutes(backend),
      ...serverRoutes(backend, this.feed),
      ...toolRoutes(backend),
      ...secretRoutes(backend),
      ...productRoutes(backend),
      ...callRoutes(backend),
      ...chatRoutes(backend),
      ...importRoutes(backend),
      ...hostedRoutes(backend, this.hostedLogs),
    ];
    this.routes = [...routes, openapiRoute(() => this.routes)];
    this.table = new RouteTable(this.routes);
  }

  /** Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isHead = request.method === 'HEAD';
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    try {
      const reply = await this.reply(request, gone.signal);
      if (reply !== undefined) send(response, reply, isHead);
    } catch (thrown) {
      if (!(thrown instanceof SwitchboardError)) this.onFault(thrown);
      sendRefusal(response, thrown, isHead);
    }
  }

  close(): void {
    this.feed.close();
    this.hostedLogs.close();
  }

  /** Undefined where there is nobody left to answer. */
  private async reply(request: IncomingMessage, signal: AbortSignal): Promise<Reply | undefined> {
    const { pathname, search } = locate(request.url ?? '/');
    if (!pathname.startsWith(`${BASE}/`)) throw nothingAt(pathname);
    const found = this.table.find(request.method ?? 'GET', pathname.slice(BASE.length));
    if (found === undefined) throw nothingAt(pathname);
    if ('allow' in found) throw new MethodRefusal(found.allow);
    const { route, params } = found;
    checkMediaType(request);
    const takesBody = route.body !== undefined || route.text !== undefined;
    const text = takesBody ? await readText(request) : '';
    if (text === undefined) return undefined;
    return route.handle({
      params,
      query: check(route.query ?? nothing, parseQuery(search)),
      body: route.body === undefined ? undefined : check(route.body, parseBody(text)),
      text,
      ifVersion: route.isConditional ? versionOf(request.headers['if-match']) : undefined,
      signal,
    });
  }
}

/** As it came: a URL would take `..` and the like for steps, and they may be names. */
function locate(url: string): { pathname: string; search: string } {
  const query = url.indexOf('?');
  return query === -1
    ? { pathname: url, search: '' }
    : { pathname: url.slice(0, query), search: url.slice(query + 1) };
}

function parseQuery(search: string): Record<string, string> {
  const entries = [...new URLSearchParams(search)];
  const names = entries.map(([name]) => name);
  const repeated = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  if (repeated.size > 0) {
    throw invalidInput([...repeated].map((name) => ({ path: [name], message: 'is there more than once' })));
  }
  return Object.fromEntries(entries);
}

function nothingAt(path: string): SwitchboardError {
  return new SwitchboardError('not_found', `There is nothing at ${path}.`);
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { fields } from '../../config/fields.ts';
import { SwitchboardError } from '../../errors.ts';
import { checkValid, credentialEnded, type Principal, type Sender } from '../../identity/principal.ts';
import { routes } from '../routes.ts';
import type { Services } from '../services.ts';
import { Authorization } from './authorization.ts';
import { checkMediaType, parseBody, readText } from './body.ts';
import { check, invalidInput } from './check.ts';
import { EventStreams } from './event-stream.ts';
import { MethodNotAllowed, send, sendError, versionOf } from './reply.ts';
import type { Reply, Route } from './route.ts';
import { RouteTable } from './route-table.ts';

const BASE = '/api/v1';
const noQuery = fields({});

interface Exchange {
  readonly request: IncomingMessage;
  readonly sender: Sender;
  readonly abort: AbortController;
}

export class Router {
  private readonly table = new RouteTable(routes);
  private readonly streams = new EventStreams();
  private readonly inFlight = new Set<Exchange>();
  private readonly services: Services;
  private readonly onFault: (thrown: unknown) => void;

  constructor(services: Services, onFault: (thrown: unknown) => void) {
    this.services = services;
    this.onFault = onFault;
  }

  /** Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse, sender: Sender): Promise<void> {
    const isHead = request.method === 'HEAD';
    const abort = new AbortController();
    const exchange = { request, sender, abort };
    this.inFlight.add(exchange);
    response.on('close', () => abort.abort());
    try {
      const reply = await this.reply(request, sender, abort.signal);
      if (reply !== undefined) send(response, reply, isHead);
    } catch (thrown) {
      const isCut = sender.principal.isEnded && abort.signal.aborted;
      if (!isCut && !(thrown instanceof SwitchboardError)) this.onFault(thrown);
      // The rest of a request that was cut must not be read.
      const isUnread = abort.signal.aborted && !request.complete;
      sendError(
        response,
        isCut ? credentialEnded() : thrown,
        isHead,
        isUnread ? { connection: 'close' } : {},
      );
    } finally {
      this.inFlight.delete(exchange);
    }
  }

  /** Aborts the requests of a principal that was revoked, removed or has expired, and ends its streams. */
  endPrincipal(principal: Principal): void {
    for (const { sender, abort } of this.inFlight) if (sender.principal === principal) abort.abort();
    this.streams.check(principal);
  }

  /** Ends the streams that the principal may no longer have. */
  permissionsChanged(principal: Principal): void {
    this.streams.check(principal);
  }

  /** One of its keys has ended: it may open them again with another. Requests of that key that are still arriving end, too. */
  endStreams(principal: Principal): void {
    for (const { request, sender, abort } of this.inFlight)
      if (sender.principal === principal && sender.credential?.isOver && !request.complete) abort.abort();
    this.streams.endOf(principal);
  }

  close(): void {
    this.streams.close();
  }

  /** Undefined if the client has disconnected. */
  private async reply(
    request: IncomingMessage,
    sender: Sender,
    signal: AbortSignal,
  ): Promise<Reply | undefined> {
    const { pathname, search } = locate(request.url ?? '/');
    if (!pathname.startsWith(`${BASE}/`)) throw nothingAt(pathname);
    const found = this.table.find(request.method ?? 'GET', pathname.slice(BASE.length));
    if (found === undefined) throw nothingAt(pathname);
    if ('allow' in found) throw new MethodNotAllowed(found.allow);
    return this.serve(found, search, request, sender, signal);
  }

  /** Reads the query and the body only if the sender may do what the route needs. */
  private async serve(
    { route, params }: { route: Route; params: Record<string, string> },
    search: string,
    request: IncomingMessage,
    sender: Sender,
    signal: AbortSignal,
  ): Promise<Reply | undefined> {
    const { services, streams } = this;
    checkMediaType(request);
    const authorization = new Authorization(services, sender, route);
    const project = params.project === undefined ? undefined : authorization.enter(params.project);
    if (project === undefined) authorization.enterAll(route.authorizesItself);
    const text = route.body === undefined ? '' : await readText(request, signal);
    checkValid(sender);
    if (text === undefined) return undefined;
    if (route.body !== undefined) authorization.repeat(project, params.project);
    const owner = { principal: sender.principal, isAllowed: () => authorization.isAllowed() };
    const reply = await route.handle({
      ...{ services, sender, params, signal, project: project! },
      query: check(route.query ?? noQuery, parseQuery(search)),
      body: bodyOf(route, text),
      ifVersion: route.isConditional ? versionOf(request.headers['if-match']) : undefined,
      accept: request.headers.accept,
      authorize: (...place) => authorization.check(...place),
      stream: (...args) => streams.reply(owner, ...args),
    });
    authorization.expectChecked();
    return reply;
  }
}

function bodyOf({ body, read }: Route, text: string): unknown {
  if (body === undefined) return undefined;
  return read === undefined ? check(body, parseBody(text)) : read(text);
}

/** Does not use `URL`, which would resolve `..`, because that may be a name here. */
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
    throw invalidInput([...repeated].map((name) => ({ path: [name], message: 'is repeated' })));
  }
  return Object.fromEntries(entries);
}

function nothingAt(path: string): SwitchboardError {
  return new SwitchboardError('not_found', `There is nothing at ${path}.`);
}

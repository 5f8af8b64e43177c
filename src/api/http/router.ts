import type { IncomingMessage, ServerResponse } from 'node:http';
import { fields } from '../../config/fields.ts';
import { SwitchboardError } from '../../errors.ts';
import type { Sender } from '../../identity/principal.ts';
import { routes } from '../routes.ts';
import type { Services } from '../services.ts';
import { checkMediaType, parseBody, readText } from './body.ts';
import { check, invalidInput } from './check.ts';
import { EventStreams } from './event-stream.ts';
import { MethodNotAllowed, send, sendError, versionOf } from './reply.ts';
import type { Reply, Route } from './route.ts';
import { RouteTable } from './route-table.ts';

const BASE = '/api/v1';
const noQuery = fields({});

export class Router {
  private readonly table = new RouteTable(routes);
  private readonly streams = new EventStreams();
  private readonly services: Services;
  private readonly onFault: (thrown: unknown) => void;

  constructor(services: Services, onFault: (thrown: unknown) => void) {
    this.services = services;
    this.onFault = onFault;
  }

  /** Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse, sender: Sender): Promise<void> {
    const isHead = request.method === 'HEAD';
    const disconnected = new AbortController();
    response.on('close', () => disconnected.abort());
    try {
      const reply = await this.reply(request, sender, disconnected.signal);
      if (reply !== undefined) send(response, reply, isHead);
    } catch (thrown) {
      if (!(thrown instanceof SwitchboardError)) this.onFault(thrown);
      sendError(response, thrown, isHead);
    }
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
    const { route, params } = found;
    checkMediaType(request);
    const text = route.body === undefined ? '' : await readText(request);
    if (text === undefined) return undefined;
    const query = check(route.query ?? noQuery, parseQuery(search));
    const body = bodyOf(route, text);
    const ifVersion = route.isConditional ? versionOf(request.headers['if-match']) : undefined;
    const { services, streams } = this;
    const project = params.project === undefined ? undefined : services.projects.get(params.project);
    return route.handle({
      services,
      sender,
      streams,
      params,
      project: project!,
      query,
      body,
      ifVersion,
      signal,
    });
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

import type { IncomingMessage, ServerResponse } from 'node:http';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';

/** A server as the API shows it. */
export interface ServerView {
  name: string;
  transport: 'stdio' | 'sse' | 'http';
  state: string;
  /** Since when it is in this state. */
  since: string;
  error: string | null;
  tool_count: number | null;
  resource_count: number | null;
  prompt_count: number | null;
}

/** What the API needs to know of the rest of the program. */
export interface ServerDirectory {
  servers(): ServerView[];
  /** The last lines of a server's log; undefined for a server that does not exist. */
  log(name: string): readonly string[] | undefined;
}

const SERVERS = '/api/v1/projects/default/servers';

/** Answers requests below /api/. */
export function createApi(
  directory: ServerDirectory,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    try {
      if (request.method !== 'GET')
        throw new SwitchboardError('method_not_allowed', 'This API is read-only so far: use GET.');
      const path = new URL(request.url ?? '/', 'http://localhost').pathname;
      send(response, 200, answer(path, directory));
    } catch (thrown) {
      const { code, message, data, kind } = asSwitchboardError(thrown);
      const headers = code === 'method_not_allowed' ? { allow: 'GET' } : {};
      send(response, kind.http, { error: { code, message, details: data } }, headers);
    }
  };
}

function answer(path: string, directory: ServerDirectory): object {
  if (path === SERVERS) return { servers: directory.servers() };
  const match = new RegExp(`^${SERVERS}/([^/]+)(/logs)?$`).exec(path);
  const name = match === null ? undefined : decodeURIComponent(match[1]!);
  const server = directory.servers().find((candidate) => candidate.name === name);
  if (match === null) throw new SwitchboardError('not_found', `There is nothing at ${path}.`);
  if (server === undefined) throw new SwitchboardError('not_found', `There is no server "${name}".`);
  return match[2] === undefined ? server : { lines: directory.log(server.name) ?? [] };
}

function send(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

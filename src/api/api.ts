import type { IncomingMessage, ServerResponse } from 'node:http';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { EventFeed } from './events.ts';
import { answerServers, type ServerDirectory } from './servers.ts';

export interface Api {
  /** Answers a request below /api/. */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Ends what would go on for ever. */
  close(): void;
}

const PROJECT = '/api/v1/projects/default';

/** Puts the parts of the API together. */
export function createApi(directory: ServerDirectory): Api {
  const feed = new EventFeed(directory);
  return {
    handle(request, response) {
      try {
        if (request.method !== 'GET')
          throw new SwitchboardError('method_not_allowed', 'This API is read-only so far: use GET.');
        const path = new URL(request.url ?? '/', 'http://localhost').pathname;
        if (path === `${PROJECT}/events`) feed.open(response);
        else send(response, 200, answer(path, directory));
      } catch (thrown) {
        const { code, message, data, kind } = asSwitchboardError(thrown);
        const headers = code === 'method_not_allowed' ? { allow: 'GET' } : {};
        send(response, kind.http, { error: { code, message, details: data } }, headers);
      }
    },
    close: () => feed.close(),
  };
}

function answer(path: string, directory: ServerDirectory): object {
  const found = path.startsWith(`${PROJECT}/`)
    ? answerServers(path.slice(PROJECT.length), directory)
    : undefined;
  if (found === undefined) throw new SwitchboardError('not_found', `There is nothing at ${path}.`);
  return found;
}

function send(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

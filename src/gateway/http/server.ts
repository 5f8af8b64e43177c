import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SwitchboardError } from '../../errors.ts';
import type { Gateway } from '../gateway.ts';
import { writeFailure } from './failure.ts';
import { checkOrigin } from './guard.ts';
import { LegacySseEndpoint } from './legacy-sse.ts';
import { writeJson } from './post-outlet.ts';
import { StreamableEndpoint, type StreamableSettings } from './streamable.ts';

// An `import` of it would also load what it has only for the sake of browsers' APIs: 16 MB.
const { createServer } = process.getBuiltinModule('node:http');

/** Answers the paths below /api/. */
export type ApiHandler = (request: IncomingMessage, response: ServerResponse) => void;

export interface HttpSettings extends StreamableSettings {
  host: string;
  port: number;
}

/** Clients of the modern era repeat the URI of a resource in a header, and URIs can be long. */
const MAX_HEAD_BYTES = 256 * 1024;

const alive = Buffer.from('{"status":"ok"}');

/** The one HTTP listener: MCP for clients, the API for programs, health for supervisors. */
export class HttpFront {
  private readonly server: Server;
  private readonly streamable: StreamableEndpoint;
  private readonly legacy: LegacySseEndpoint;
  private readonly api: ApiHandler;
  private readonly settings: HttpSettings;

  constructor(gateway: Gateway, api: ApiHandler, settings: HttpSettings) {
    this.settings = settings;
    this.api = api;
    this.streamable = new StreamableEndpoint(gateway, settings);
    this.legacy = new LegacySseEndpoint(gateway, settings.maxMessageBytes);
    this.server = createServer(
      { keepAliveTimeout: 65_000, requestTimeout: 0, maxHeaderSize: MAX_HEAD_BYTES },
      (request, response) => {
        try {
          this.route(request, response);
        } catch (error) {
          writeFailure(response, error);
        }
      },
    );
  }

  /** Gives the port, which matters where the configured one is 0. */
  async listen(): Promise<number> {
    const { host, port } = this.settings;
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', (error: NodeJS.ErrnoException) =>
        reject(describeListenError(error, host, port)),
      );
      this.server.listen(port, host, resolve);
    });
    return (this.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  private route(request: IncomingMessage, response: ServerResponse): void {
    checkOrigin(request);
    const url = request.url ?? '/';
    const query = url.indexOf('?');
    const path = query === -1 ? url : url.slice(0, query);
    switch (path) {
      case '/mcp':
        this.streamable.handle(request, response, undefined);
        return;
      case '/sse':
        if (takes(request, response, 'GET')) this.legacy.listen(request, response);
        return;
      case '/messages':
        if (!takes(request, response, 'POST')) return;
        this.legacy.post(request, response, new URLSearchParams(url.slice(query + 1)).get('sessionId'));
        return;
      case '/healthz':
      case '/readyz':
        if (takes(request, response, 'GET', 'HEAD')) writeJson(response, [alive], {});
        return;
      default:
        if (path.startsWith('/api/')) this.api(request, response);
        else if (path.startsWith('/mcp/')) this.streamable.handle(request, response, projectIn(path));
        else
          throw new SwitchboardError(
            'not_found',
            `There is nothing at ${path}. MCP clients connect to /mcp.`,
          );
    }
  }
}

/** The project of /mcp/<project>; many write a slash behind an address and mean nothing by it. */
function projectIn(path: string): string | undefined {
  try {
    return decodeURIComponent(path.slice('/mcp/'.length).replace(/\/$/, '')) || undefined;
  } catch {
    throw new SwitchboardError('not_found', `There is nothing at ${path}.`);
  }
}

/** False when the request has been refused because of its method. */
function takes({ method = '' }: IncomingMessage, response: ServerResponse, ...methods: string[]): boolean {
  if (methods.includes(method)) return true;
  const allow = methods.join(', ');
  writeFailure(response, new SwitchboardError('method_not_allowed', `Use ${allow} here.`), { allow });
  return false;
}

function describeListenError(error: NodeJS.ErrnoException, host: string, port: number): SwitchboardError {
  const why =
    error.code === 'EADDRINUSE'
      ? `port ${port} on ${host} is in use; is Switchboard running already? Choose another with --port`
      : `${host}:${port} cannot be listened on: ${error.message}`;
  return new SwitchboardError('invalid_config', why, { cause: error });
}

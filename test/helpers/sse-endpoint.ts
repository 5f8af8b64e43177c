import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Endpoint, Relay } from './backend-endpoint.ts';
import { openEvents, writeEvent } from './http-peer.ts';
import type { RpcMessage } from './raw-http.ts';

/** HTTP+SSE of 2024-11-05, as a server speaks it: one stream for each session, on which everything is answered. */
export class SseEndpoint implements Endpoint {
  readonly path = '/sse';
  private readonly relay: Relay;
  private readonly sessions = new Map<string, ServerResponse>();
  private readonly streams = new Set<ServerResponse>();

  constructor(relay: Relay) {
    this.relay = relay;
  }

  async handle(
    request: IncomingMessage,
    response: ServerResponse,
    message: RpcMessage | undefined,
  ): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname === this.path) {
      if (request.method === 'GET') this.openSession(response);
      else response.writeHead(405).end();
      return;
    }
    const stream = this.sessions.get(searchParams.get('session') ?? '');
    if (stream === undefined) {
      response.writeHead(404).end('no such session');
      return;
    }
    response.writeHead(202).end('Accepted');
    if (message?.id === undefined) return;
    const write = (answer: object) => {
      if (!stream.destroyed) writeEvent(stream, { event: 'message' }, answer);
    };
    write(await this.relay(message, write));
  }

  forgetSessions(): void {
    this.sessions.clear();
  }

  dropStreams(): void {
    for (const stream of this.streams) stream.destroy();
  }

  private openSession(response: ServerResponse): void {
    const session = randomUUID();
    this.sessions.set(session, response);
    this.streams.add(response);
    openEvents(response);
    response.write(`event: endpoint\ndata: /messages?session=${session}\n\n`);
    response.on('close', () => {
      this.sessions.delete(session);
      this.streams.delete(response);
    });
  }
}

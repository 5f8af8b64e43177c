import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerJson, openEvents, writeEvent } from './http-peer.ts';
import type { RpcMessage } from './raw-http.ts';

/** Returns the response; earlier notifications go to `notify`. */
export type Relay = (message: RpcMessage, notify: (message: object) => void) => Promise<object>;

export interface Endpoint {
  readonly path: string;
  handle(request: IncomingMessage, response: ServerResponse, message: RpcMessage | undefined): Promise<void>;
  forgetSessions(): void;
  dropStreams(): void;
}

/** The server side of HTTP+SSE of 2024-11-05: one stream per session, which carries all responses. */
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

export class StreamableEndpoint implements Endpoint {
  readonly path = '/mcp';
  private readonly relay: Relay;
  private readonly answersWithEvents: boolean;
  private readonly unknownSession: number;
  private readonly sessions = new Set<string>();
  private readonly streams = new Set<ServerResponse>();

  constructor(relay: Relay, answersWithEvents: boolean, unknownSession: number) {
    this.relay = relay;
    this.answersWithEvents = answersWithEvents;
    this.unknownSession = unknownSession;
  }

  async handle(
    request: IncomingMessage,
    response: ServerResponse,
    message: RpcMessage | undefined,
  ): Promise<void> {
    const session = String(request.headers['mcp-session-id']);
    if (message?.method === 'initialize') {
      const opened = randomUUID();
      this.sessions.add(opened);
      answerJson(response, await this.relay(message, () => {}), { 'mcp-session-id': opened });
    } else if (!this.sessions.has(session)) {
      response.writeHead(this.unknownSession).end('no such session');
    } else if (request.method === 'DELETE') {
      this.sessions.delete(session);
      response.writeHead(200).end();
    } else if (request.method === 'GET') {
      this.openStream(response);
    } else if (message?.id === undefined) {
      response.writeHead(202).end();
    } else {
      await this.answer(message, response);
    }
  }

  forgetSessions(): void {
    this.sessions.clear();
  }

  dropStreams(): void {
    for (const stream of this.streams) stream.destroy();
  }

  private async answer(message: RpcMessage, response: ServerResponse): Promise<void> {
    if (this.answersWithEvents && message.method === 'tools/call') this.openStream(response);
    const answer = await this.relay(message, (notification) => {
      if (!response.headersSent) this.openStream(response);
      writeEvent(response, {}, notification);
    });
    if (response.destroyed) return;
    if (!response.headersSent) {
      answerJson(response, answer);
      return;
    }
    writeEvent(response, {}, answer);
    response.end();
  }

  private openStream(response: ServerResponse): void {
    openEvents(response);
    this.streams.add(response);
    response.on('close', () => this.streams.delete(response));
  }
}

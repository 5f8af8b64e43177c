import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Endpoint, Relay } from './backend-endpoint.ts';
import { answerJson, openEvents, writeEvent } from './http-peer.ts';
import type { RpcMessage } from './raw-http.ts';

/** Streamable HTTP, as a server speaks it. */
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

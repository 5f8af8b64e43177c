import type { IncomingMessage, ServerResponse } from 'node:http';
import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import { readBody } from '../../http/body.ts';
import { openEventStream, writeEvent, writeKeepAlive } from '../../http/event-stream.ts';
import { checkValid, type Sender } from '../../identity/principal.ts';
import { type Chunks, errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import { LARGE_BYTES } from '../../protocol/large-walk.ts';
import { bytesAt, type Message } from '../../protocol/message.ts';
import { readLargeMessage, readMessage, splitBatch } from '../../protocol/message-reader.ts';
import { sseMessage } from '../../protocol/sse.ts';
import type { Incoming } from '../caller.ts';
import { checkMediaType, preferOf, projectsOf, writeFailure } from '../http/exchange.ts';
import type { Responder } from '../responder.ts';
import type { ClientStream, Session } from './caller.ts';
import type { LegacyGateway } from './dispatch.ts';

/** HTTP+SSE of 2024-11-05: one stream for all messages to the client, and a path for its own. */
export class LegacySseEndpoint {
  private readonly gateway: LegacyGateway;
  private readonly maxBytes: number;
  private readonly clients = new Map<string, SseClient>();

  constructor(gateway: LegacyGateway, maxBytes: number) {
    this.gateway = gateway;
    this.maxBytes = maxBytes;
  }

  /** GET /sse */
  listen(request: IncomingMessage, response: ServerResponse, sender: Sender): void {
    const client = new SseClient(response, sender, projectsOf(request, undefined));
    const key = crypto.randomUUID();
    this.clients.set(key, client);
    openEventStream(response);
    writeEvent(response, [Buffer.from(`event: endpoint\ndata: /messages?sessionId=${key}\n\n`)]);
    response.on('close', () => {
      this.clients.delete(key);
      if (client.session !== undefined) this.gateway.end(client.session);
    });
  }

  /** POST /messages?sessionId=… */
  post(request: IncomingMessage, response: ServerResponse, sender: Sender, key: string | null): void {
    if (key === null) throw new SwitchboardError('session_required', 'The sessionId parameter is missing.');
    const client = this.clients.get(key);
    const isForeign = client !== undefined && client.sender.principal !== sender.principal;
    if (isForeign) this.gateway.services.access.reportForeign(sender, 'session of another');
    if (client === undefined || isForeign)
      throw new SwitchboardError('unknown_session', 'That stream is closed: open /sse again.');
    checkMediaType(request);
    readBody(request, this.maxBytes, (error, body) => {
      try {
        if (error !== undefined) throw error;
        const accept = (messages: Message[]) => {
          checkValid(sender);
          response.writeHead(202).end('Accepted');
          for (const message of messages) this.receive(client, message, request);
        };
        if (body.length > LARGE_BYTES) {
          readLargeMessage(body)
            .then((message) => accept([message]))
            .catch((thrown: unknown) => writeFailure(response, thrown));
        } else accept((splitBatch(body) ?? [body]).map((bytes) => readMessage(bytes)));
      } catch (thrown) {
        writeFailure(response, thrown);
      }
    });
  }

  private receive(client: SseClient, message: Message, request: IncomingMessage): void {
    try {
      const { session, projects: usual } = client;
      const projects = projectsOf(request, undefined) ?? usual;
      if (session !== undefined) {
        if (this.gateway.session(session.id, client.sender.principal, usual) === undefined) {
          throw new SwitchboardError('unknown_session', 'The session has ended: open /sse again.');
        }
        this.gateway.receive({
          caller: session,
          message,
          responder: client,
          address: client.sender.address,
          prefer: preferOf(request),
          projects,
        });
      } else if (message.method === 'initialize' && message.kind === 'request') {
        const opened = this.gateway.open(message, client.sender, projects, () => client);
        client.session = opened.session;
        client.respond(opened.response);
      } else {
        throw new SwitchboardError('session_required', 'Send initialize first.');
      }
    } catch (thrown) {
      if (message.idSpan === undefined) return;
      client.respond([
        errorMessage(bytesAt(message.bytes, message.idSpan), toRpcError(asSwitchboardError(thrown))),
      ]);
    }
  }
}

class SseClient implements ClientStream, Responder {
  private readonly response: ServerResponse;
  readonly sender: Sender;
  readonly projects: Incoming['projects'];
  session: Session | undefined;

  readonly isBatch = false;
  readonly takesEvents = true;

  constructor(response: ServerResponse, sender: Sender, projects: Incoming['projects']) {
    this.response = response;
    this.sender = sender;
    this.projects = projects;
  }

  get isOpen(): boolean {
    return !this.response.destroyed;
  }

  send(message: Chunks): void {
    writeEvent(this.response, sseMessage(message, undefined));
  }

  event(message: Chunks): void {
    this.send(message);
  }

  respond(message: Chunks): void {
    this.send(message);
  }

  end(): void {}

  pause(): void {}

  keepAlive(): void {
    writeKeepAlive(this.response);
  }

  disconnect(): void {
    this.close();
  }

  close(): void {
    this.response.end();
  }
}

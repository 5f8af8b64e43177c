import type { IncomingMessage, ServerResponse } from 'node:http';
import { asSwitchboardError, SwitchboardError, stopping } from '../../errors.ts';
import { readBody } from '../../http/body.ts';
import { checkValid, type Sender } from '../../identity/principal.ts';
import { errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import { LARGE_BYTES } from '../../protocol/large-walk.ts';
import { idBytes, type Message } from '../../protocol/message.ts';
import { readLargeMessage, readMessage, splitBatch } from '../../protocol/message-reader.ts';
import {
  allowsBatches,
  isProtocolVersion,
  modernVersion,
  protocolVersions,
} from '../../protocol/versions.ts';
import type { Gateway } from '../gateway.ts';
import {
  checkMediaType,
  type Exchange,
  isModern,
  isModernByHeader,
  type PostTerms,
  preferOf,
  projectsOf,
  readAccept,
  readTerms,
  retryHeaders,
  writeFailure,
  writeJson,
} from '../http/exchange.ts';
import { forgetsClient, receiveModern } from '../modern/http.ts';
import { discardResponder } from '../responder.ts';
import type { Session } from './caller.ts';
import { ReplayBudget } from './replay.ts';
import { LegacyResponder } from './responder.ts';
import { SessionStreams } from './streams.ts';

export interface StreamableSettings {
  maxMessageBytes: number;
  maxReplayBytes: number;
  replayMs: number;
}

/** The streamable HTTP endpoint: POST sends messages, GET listens, DELETE ends the session. */
export class StreamableEndpoint {
  private readonly gateway: Gateway;
  private readonly maxBytes: number;
  private readonly replayBudget: ReplayBudget;

  constructor(gateway: Gateway, { maxMessageBytes, maxReplayBytes, replayMs }: StreamableSettings) {
    this.gateway = gateway;
    this.maxBytes = maxMessageBytes;
    this.replayBudget = new ReplayBudget(maxReplayBytes, replayMs);
  }

  handle(
    request: IncomingMessage,
    response: ServerResponse,
    sender: Sender,
    project: string | undefined,
  ): void {
    const exchange = { request, response, sender, projects: projectsOf(request, project) };
    if (request.method === 'DELETE' && forgetsClient(this.gateway.modern, exchange)) {
      response.writeHead(200).end();
    } else if (request.method !== 'POST' && isModernByHeader(request)) {
      rejectMethod(response, 'POST');
    } else if (request.method === 'POST') {
      this.post(exchange);
    } else if (request.method === 'GET') {
      this.get(exchange);
    } else if (request.method === 'DELETE') {
      this.delete(exchange);
    } else {
      rejectMethod(response, 'POST, GET, DELETE');
    }
  }

  /** Responds after the deletion is stored, so that an ended session never exists after a restart. */
  private delete(exchange: Exchange): void {
    this.gateway.legacy.end(this.reach(exchange).session);
    const respond = () => exchange.response.writeHead(200).end();
    const ended = this.gateway.legacy.ended();
    if (ended === undefined) respond();
    else void ended.then(respond);
  }

  private post(exchange: Exchange): void {
    const { request, response } = exchange;
    checkMediaType(request);
    const terms = readTerms(request);
    readBody(request, this.maxBytes, (error, body) => {
      try {
        if (error !== undefined) throw error;
        if (body.length > LARGE_BYTES) {
          readLargeMessage(body)
            .then((message) => this.receiveOne(exchange, message, terms))
            .catch((thrown: unknown) => writeFailure(response, thrown));
          return;
        }
        const batch = body[0] === 0x7b ? undefined : splitBatch(body);
        if (batch === undefined) this.receiveOne(exchange, readMessage(body), terms);
        else this.receiveBatch(exchange, batch, terms);
      } catch (thrown) {
        writeFailure(response, thrown);
      }
    });
  }

  private receiveOne(exchange: Exchange, message: Message, terms: PostTerms): void {
    const { request, response, sender, projects } = exchange;
    checkValid(sender);
    if (isModern(request, message)) {
      receiveModern(this.gateway.modern, exchange, message, terms);
      return;
    }
    checkVersion(request);
    if (message.method === 'initialize' && message.kind === 'request') {
      this.initialize(exchange, message);
      return;
    }
    const { session, streams } = this.reach(exchange);
    const { legacy } = this.gateway;
    const how = { address: sender.address, prefer: preferOf(request), projects };
    if (message.kind !== 'request') {
      legacy.receive({ caller: session, message, responder: discardResponder, ...how });
      response.writeHead(202).end();
    } else if (legacy.isStopping) {
      rejectMessage(response, message, stopping());
    } else {
      const responder = new LegacyResponder(response, streams, terms);
      legacy.receive({ caller: session, message, responder, ...how });
    }
  }

  private initialize({ response, sender, projects }: Exchange, message: Message): void {
    const { legacy } = this.gateway;
    try {
      const opened = legacy.open(
        message,
        sender,
        projects,
        ({ version }) => new SessionStreams(version, this.replayBudget),
      );
      legacy.persist(opened.session);
      writeJson(response, opened.response, { 'mcp-session-id': opened.session.id });
    } catch (thrown) {
      rejectMessage(response, message, asSwitchboardError(thrown));
    }
  }

  private receiveBatch(exchange: Exchange, batch: Buffer[], terms: PostTerms): void {
    const { request, response, sender, projects } = exchange;
    checkValid(sender);
    checkVersion(request);
    const { session: caller, streams } = this.reach(exchange);
    const { version } = caller.facts;
    if (!allowsBatches(version))
      throw new SwitchboardError('invalid_request', `Protocol ${version} has no batches.`);
    if (batch.length === 0) throw new SwitchboardError('invalid_request', 'The batch is empty.');
    const messages = batch.map((bytes) => readMessage(bytes));
    const requests = messages.filter(({ kind }) => kind === 'request').length;
    const responder =
      requests === 0
        ? discardResponder
        : new LegacyResponder(response, streams, { ...terms, requests, isBatch: true });
    const how = { address: sender.address, prefer: preferOf(request), projects };
    for (const message of messages) this.gateway.legacy.receive({ caller, message, responder, ...how });
    if (requests === 0) response.writeHead(202).end();
  }

  private get(exchange: Exchange): void {
    const { request, response } = exchange;
    if (!readAccept(request.headers.accept).acceptsEvents)
      throw new SwitchboardError('not_acceptable', 'GET opens an event stream: accept text/event-stream.');
    checkVersion(request);
    const { session, streams } = this.reach(exchange);
    response.on('close', () => {
      session.lastSeen = Date.now();
    });
    const lastEventId = request.headers['last-event-id'];
    if (lastEventId === undefined) streams.listen(response);
    else if (!streams.resume(response, String(lastEventId))) {
      const why = `Last-Event-ID "${lastEventId}" is not from this session.`;
      throw new SwitchboardError('invalid_params', why);
    }
  }

  private reach({ request, sender, projects }: Exchange): {
    session: Session;
    streams: SessionStreams;
  } {
    const id = request.headers['mcp-session-id'];
    if (typeof id !== 'string') {
      const why = 'The Mcp-Session-Id header is missing: initialize first.';
      throw new SwitchboardError('session_required', why);
    }
    const { legacy } = this.gateway;
    const { principal } = sender;
    const session =
      legacy.session(id, principal, projects) ??
      // Event ids from before the restart must not pass for ours.
      legacy.restore(
        id,
        principal,
        projects,
        ({ version }) => new SessionStreams(version, this.replayBudget, Date.now()),
      );
    if (session?.stream instanceof SessionStreams) return { session, streams: session.stream };
    const { principal: owner } = legacy.sessions.get(id) ?? sender;
    if (owner !== principal) legacy.services.access.reportForeign(sender, 'session of another');
    const why = 'The session does not exist or has expired: initialize again.';
    throw new SwitchboardError('unknown_session', why);
  }
}

/** Also sets the HTTP status, because the request has not begun. */
function rejectMessage(response: ServerResponse, message: Message, error: SwitchboardError): void {
  const body = [errorMessage(idBytes(message), toRpcError(error))];
  writeJson(response, body, retryHeaders(error), error.kind.http);
}

function rejectMethod(response: ServerResponse, allow: string): void {
  writeFailure(response, new SwitchboardError('method_not_allowed', `Use ${allow} here.`), { allow });
}

function checkVersion({ headers }: IncomingMessage): void {
  const version = headers['mcp-protocol-version'];
  if (version === undefined || isProtocolVersion(version)) return;
  const supported = [modernVersion, ...protocolVersions];
  throw new SwitchboardError(
    'unsupported_version',
    `MCP-Protocol-Version "${String(version)}" is not supported; supported are ${supported.join(', ')}.`,
    { data: { supported, requested: String(version) } },
  );
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { asSwitchboardError, SwitchboardError, stopping } from '../../errors.ts';
import { readBody } from '../../http/body.ts';
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
import type { Incoming } from '../caller.ts';
import type { Gateway } from '../gateway.ts';
import {
  checkMediaType,
  type PostTerms,
  preferOf,
  projectsOf,
  readAccept,
  readTerms,
  writeFailure,
  writeJson,
} from '../http/exchange.ts';
import { forgetsClient, isModern, isModernByHeader, receiveModern } from '../modern/http.ts';
import { discardResponder } from '../responder.ts';
import type { Session } from './caller.ts';
import { ReplayBudget } from './replay-budget.ts';
import { LegacyResponder } from './responder.ts';
import { SessionStreams } from './streams.ts';

type Projects = Incoming['projects'];

/** A session that is reached over streamable HTTP. */
interface Reached {
  session: Session;
  streams: SessionStreams;
}

export interface StreamableSettings {
  maxMessageBytes: number;
  /** What all sessions together keep of events, and for how long after the end of a stream. */
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

  handle(request: IncomingMessage, response: ServerResponse, project: string | undefined): void {
    const projects = projectsOf(request, project);
    if (request.method === 'DELETE' && forgetsClient(this.gateway.modern, request, projects)) {
      response.writeHead(200).end();
      return;
    }
    if (request.method !== 'POST' && isModernByHeader(request)) {
      refuseMethod(response, 'POST');
      return;
    }
    switch (request.method) {
      case 'POST':
        this.post(request, response, projects);
        return;
      case 'GET':
        this.get(request, response, projects);
        return;
      case 'DELETE':
        this.delete(request, response, projects);
        return;
      default:
        refuseMethod(response, 'POST, GET, DELETE');
    }
  }

  /** Whoever is told that a session is over must not find it again after a restart. */
  private delete(request: IncomingMessage, response: ServerResponse, projects: Projects): void {
    this.gateway.legacy.end(this.reach(request, projects).session);
    const answer = () => response.writeHead(200).end();
    const ended = this.gateway.legacy.ended();
    if (ended === undefined) answer();
    else void ended.then(answer);
  }

  private post(request: IncomingMessage, response: ServerResponse, projects: Projects): void {
    checkMediaType(request);
    const terms = readTerms(request);
    readBody(request, this.maxBytes, (error, body) => {
      try {
        if (error !== undefined) throw error;
        if (body.length > LARGE_BYTES) {
          readLargeMessage(body)
            .then((message) => this.receiveOne(request, response, message, terms, projects))
            .catch((thrown: unknown) => writeFailure(response, thrown));
        } else this.receive(request, response, body, terms, projects);
      } catch (thrown) {
        writeFailure(response, thrown);
      }
    });
  }

  private receive(
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer,
    terms: PostTerms,
    projects: Projects,
  ): void {
    const batch = body[0] === 0x7b ? undefined : splitBatch(body);
    if (batch !== undefined) {
      checkVersion(request);
      this.receiveBatch(this.reach(request, projects), request, response, batch, terms, projects);
      return;
    }
    this.receiveOne(request, response, readMessage(body), terms, projects);
  }

  private receiveOne(
    request: IncomingMessage,
    response: ServerResponse,
    message: Message,
    terms: PostTerms,
    projects: Projects,
  ): void {
    if (isModern(request, message)) {
      receiveModern(this.gateway.modern, request, response, message, terms, projects);
      return;
    }
    checkVersion(request);
    if (message.method === 'initialize' && message.kind === 'request') {
      this.initialize(message, response, projects);
      return;
    }
    const { session, streams } = this.reach(request, projects);
    const prefer = preferOf(request);
    if (message.kind === 'request') {
      if (this.gateway.legacy.isStopping) {
        refuseMessage(response, message, stopping());
        return;
      }
      const responder = new LegacyResponder(response, streams, terms);
      this.gateway.legacy.receive({ caller: session, message, responder, prefer, projects });
    } else {
      this.gateway.legacy.receive({
        caller: session,
        message,
        responder: discardResponder,
        prefer,
        projects,
      });
      response.writeHead(202).end();
    }
  }

  private initialize(message: Message, response: ServerResponse, projects: Projects): void {
    try {
      const { session, response: opened } = this.gateway.legacy.open(
        message,
        projects,
        ({ version }) => new SessionStreams(version, this.replayBudget),
      );
      this.gateway.legacy.persist(session);
      writeJson(response, opened, { 'mcp-session-id': session.id });
    } catch (thrown) {
      refuseMessage(response, message, asSwitchboardError(thrown));
    }
  }

  private receiveBatch(
    { session, streams }: Reached,
    request: IncomingMessage,
    response: ServerResponse,
    batch: Buffer[],
    terms: PostTerms,
    projects: Projects,
  ): void {
    const prefer = preferOf(request);
    if (!allowsBatches(session.facts.version)) {
      throw new SwitchboardError('invalid_request', `Protocol ${session.facts.version} has no batches.`);
    }
    if (batch.length === 0) throw new SwitchboardError('invalid_request', 'The batch is empty.');
    const messages = batch.map((bytes) => readMessage(bytes));
    const requests = messages.filter(({ kind }) => kind === 'request').length;
    const responder =
      requests === 0
        ? discardResponder
        : new LegacyResponder(response, streams, { ...terms, requests, isBatch: true });
    for (const message of messages)
      this.gateway.legacy.receive({ caller: session, message, responder, prefer, projects });
    if (requests === 0) response.writeHead(202).end();
  }

  private get(request: IncomingMessage, response: ServerResponse, projects: Projects): void {
    const { acceptsEvents } = readAccept(request.headers.accept);
    if (!acceptsEvents)
      throw new SwitchboardError('not_acceptable', 'GET opens an event stream: accept text/event-stream.');
    checkVersion(request);
    const { session, streams } = this.reach(request, projects);
    response.on('close', () => {
      session.lastSeen = Date.now();
    });
    const lastEventId = request.headers['last-event-id'];
    if (lastEventId === undefined) streams.listen(response);
    else if (!streams.resume(response, String(lastEventId))) {
      throw new SwitchboardError(
        'invalid_params',
        `Last-Event-ID "${lastEventId}" is not from this session.`,
      );
    }
  }

  private reach(request: IncomingMessage, projects: Projects): Reached {
    const id = request.headers['mcp-session-id'];
    if (typeof id !== 'string') {
      throw new SwitchboardError(
        'session_required',
        'The Mcp-Session-Id header is missing: initialize first.',
      );
    }
    const session = this.gateway.legacy.session(id, projects) ?? this.revive(id, projects);
    if (session === undefined || !(session.stream instanceof SessionStreams)) {
      throw new SwitchboardError(
        'unknown_session',
        'The session does not exist or has expired: initialize again.',
      );
    }
    return { session, streams: session.stream };
  }

  private revive(id: string, projects: Projects): Session | undefined {
    return this.gateway.legacy.restore(
      id,
      projects,
      // The events of the time before are not to be taken for ours.
      ({ version }) => new SessionStreams(version, this.replayBudget, Date.now()),
    );
  }
}

/** Of a request that is not begun: the status says so too. */
function refuseMessage(response: ServerResponse, message: Message, error: SwitchboardError): void {
  writeJson(response, [errorMessage(idBytes(message), toRpcError(error))], undefined, error.kind.http);
}

function refuseMethod(response: ServerResponse, allow: string): void {
  const error = new SwitchboardError('method_not_allowed', `The endpoint takes ${allow}.`);
  writeFailure(response, error, { allow });
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

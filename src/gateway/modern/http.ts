import type { IncomingMessage, ServerResponse } from 'node:http';
import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import { errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import { idBytes, type Message } from '../../protocol/message.ts';
import { isDescribed } from '../../protocol/self-description.ts';
import { namesModernEra } from '../../protocol/versions.ts';
import type { Incoming } from '../caller.ts';
import { type PostTerms, preferOf, writeJson } from '../http/exchange.ts';
import { checkDescription, checkVersion } from './caller.ts';
import type { ModernGateway } from './dispatch.ts';
import { checkHeaders, mismatch } from './header-checks.ts';
import { ModernResponder } from './responder.ts';

/** Whether a message is of the modern era: it says so itself, or its header does. */
export function isModern(request: IncomingMessage, message: Message): boolean {
  return isDescribed(message) || isModernByHeader(request);
}

/** Whether a request without a message is: there are none in the modern era. */
export function isModernByHeader({ headers }: IncomingMessage): boolean {
  return namesModernEra(headers['mcp-protocol-version']);
}

/** One message of the modern era, and the answer to it. */
export function receiveModern(
  gateway: ModernGateway,
  request: IncomingMessage,
  response: ServerResponse,
  message: Message,
  terms: PostTerms,
  projects: Incoming['projects'],
): void {
  if (message.kind !== 'request') {
    receiveOther(response, message);
    return;
  }
  try {
    const headers = checkedHeaders(request, message);
    const responder = new ModernResponder(response, terms);
    const session = sessionOf(request);
    const how = { prefer: preferOf(request), projects, headers, session };
    const caller = gateway.receive(message, responder, how);
    // Whoever closes the connection before the answer has cancelled.
    if (!response.writableEnded) response.on('close', () => caller.leave());
  } catch (thrown) {
    const error = asSwitchboardError(thrown);
    const rpc = toRpcError(error, 'modern');
    writeJson(response, [errorMessage(idBytes(message), rpc)], undefined, error.kind.http);
  }
}

/** In this era clients only ask: a notification is taken note of, an answer belongs to nothing. */
function receiveOther(response: ServerResponse, { kind }: Message): void {
  if (kind !== 'notification')
    throw new SwitchboardError(
      'invalid_request',
      'Servers of this protocol version ask for nothing: this answers nothing.',
    );
  response.writeHead(202).end();
}

/** The headers of the request, which say what it says. */
function checkedHeaders({ headers }: IncomingMessage, message: Message): IncomingMessage['headers'] {
  if (message.method === 'initialize' && !isDescribed(message))
    throw mismatch(
      'initialize belongs to older protocol versions than the header mcp-protocol-version names',
    );
  const version = checkDescription(message);
  const named = headers['mcp-protocol-version'];
  if (named !== undefined && named !== version) {
    throw mismatch(`the header mcp-protocol-version says "${String(named)}", the message "${version}"`);
  }
  checkVersion(version);
  checkHeaders(headers, version, message);
  return headers;
}

/** A client that named itself says that it will not come again. False where the request is about something else. */
export function forgetsClient(
  gateway: ModernGateway,
  request: IncomingMessage,
  projects: Incoming['projects'],
): boolean {
  const session = sessionOf(request);
  if (session === undefined || request.headers['mcp-session-id'] !== undefined) return false;
  gateway.forget(session, projects);
  return true;
}

/** It is kept for as long as the client may come again. */
const LONGEST_SESSION = 200;

/** As whom the client says that it comes again. */
function sessionOf({ headers }: IncomingMessage): string | undefined {
  const session = headers['x-switchboard-session'];
  if (session === undefined) return undefined;
  if (session.length <= LONGEST_SESSION) return String(session);
  const why = `X-Switchboard-Session is longer than ${LONGEST_SESSION} characters.`;
  throw new SwitchboardError('invalid_request', why);
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import { errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import { idBytes, type Message } from '../../protocol/message.ts';
import { isDescribed } from '../../protocol/self-description.ts';
import { type Exchange, type PostTerms, preferOf, retryHeaders, writeJson } from '../http/exchange.ts';
import { checkDescription, checkVersion } from './caller.ts';
import type { ModernGateway } from './dispatch.ts';
import { checkHeaders, mismatch } from './header-checks.ts';
import { ModernResponder } from './responder.ts';

export function receiveModern(
  gateway: ModernGateway,
  { request, response, sender, projects }: Exchange,
  message: Message,
  terms: PostTerms,
): void {
  if (message.kind !== 'request') {
    receiveOther(response, message);
    return;
  }
  try {
    const headers = checkedHeaders(request, message);
    const responder = new ModernResponder(response, terms);
    const how = { sender, prefer: preferOf(request), projects, headers, session: sessionOf(request) };
    const caller = gateway.receive(message, responder, how);
    // A client that closes the connection before the response cancels its request.
    if (!response.writableEnded) response.on('close', () => caller.leave());
  } catch (thrown) {
    const error = asSwitchboardError(thrown);
    const rpc = toRpcError(error, 'modern');
    writeJson(response, [errorMessage(idBytes(message), rpc)], retryHeaders(error), error.kind.http);
  }
}

/** Accepts notifications. Responses are rejected, because there are no requests to clients. */
function receiveOther(response: ServerResponse, { kind }: Message): void {
  if (kind !== 'notification')
    throw new SwitchboardError(
      'invalid_request',
      'Servers send no requests in this protocol version, so there is nothing to respond to.',
    );
  response.writeHead(202).end();
}

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

/** False if the request does not end a client. */
export function forgetsClient(gateway: ModernGateway, { request, sender, projects }: Exchange): boolean {
  const session = sessionOf(request);
  if (session === undefined || request.headers['mcp-session-id'] !== undefined) return false;
  gateway.forget(session, sender.principal, projects);
  return true;
}

const LONGEST_SESSION = 200;

/** The name under which the client returns, kept until the client expires. */
function sessionOf({ headers }: IncomingMessage): string | undefined {
  const session = headers['x-switchboard-session'];
  if (session === undefined) return undefined;
  if (session.length <= LONGEST_SESSION) return String(session);
  const why = `X-Switchboard-Session is longer than ${LONGEST_SESSION} characters.`;
  throw new SwitchboardError('invalid_request', why);
}

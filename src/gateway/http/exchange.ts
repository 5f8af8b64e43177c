import type { IncomingMessage, ServerResponse } from 'node:http';
import { asSwitchboardError, leavesBody, SwitchboardError } from '../../errors.ts';
import type { Sender } from '../../identity/principal.ts';
import { byteLength, type Chunks, errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import type { Message } from '../../protocol/message.ts';
import { isDescribed } from '../../protocol/self-description.ts';
import { namesModernEra } from '../../protocol/versions.ts';
import type { Incoming } from '../caller.ts';

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly sender: Sender;
  readonly projects: Incoming['projects'];
}

/** Responses up to this size are sent in one piece. */
const GATHER_BYTES = 64 * 1024;

/** Any web page can make a browser post a form or plain text; JSON requires a preflight request. */
export function checkMediaType({ headers: { 'content-type': type } }: IncomingMessage): void {
  if (type !== undefined && /^application\/json\s*(;|$)/i.test(type)) return;
  throw new SwitchboardError('unsupported_media_type', 'The Content-Type must be application/json.');
}

export function preferOf({ headers }: IncomingMessage): string | undefined {
  const header = headers['x-switchboard-prefer'];
  return header === undefined ? undefined : String(header);
}

/** Named in the path and in the header X-Project-Id. */
export function projectsOf({ headers }: IncomingMessage, inPath: string | undefined): Incoming['projects'] {
  const header = headers['x-project-id'];
  if (header === undefined) return inPath === undefined ? undefined : [inPath];
  return inPath === undefined ? [String(header)] : [inPath, String(header)];
}

/** Declared by the message itself, or by its header. */
export function isModern(request: IncomingMessage, message: Message): boolean {
  return isDescribed(message) || isModernByHeader(request);
}

export function isModernByHeader({ headers }: IncomingMessage): boolean {
  return namesModernEra(headers['mcp-protocol-version']);
}

export interface PostTerms {
  readonly acceptsEvents: boolean;
  readonly prefersEvents: boolean;
  /** More than one only in a batch. */
  readonly requests: number;
  readonly isBatch: boolean;
}

const onlyJson: PostTerms = { acceptsEvents: false, prefersEvents: false, requests: 1, isBatch: false };
const jsonOrEvents: PostTerms = { ...onlyJson, acceptsEvents: true };
const eventsFirst: PostTerms = { ...jsonOrEvents, prefersEvents: true };

export function readTerms({ headers: { accept } }: IncomingMessage): PostTerms {
  const { acceptsJson, acceptsEvents } = readAccept(accept);
  if (!acceptsJson && !acceptsEvents)
    throw new SwitchboardError('not_acceptable', 'Accept application/json and text/event-stream.');
  if (!acceptsEvents) return onlyJson;
  // Nearly every client accepts both; one that names events first, or nothing else, gets events.
  return !acceptsJson || namesEventsFirst(accept) ? eventsFirst : jsonOrEvents;
}

function namesEventsFirst(accept = ''): boolean {
  const events = accept.indexOf('text/event-stream');
  return events !== -1 && events < accept.indexOf('application/json');
}

export function readAccept(accept = '*/*'): { acceptsJson: boolean; acceptsEvents: boolean } {
  const any = accept.includes('*/*');
  return {
    acceptsJson: any || accept.includes('application/json') || accept.includes('application/*'),
    acceptsEvents: any || accept.includes('text/event-stream') || accept.includes('text/*'),
  };
}

export function writeJson(
  response: ServerResponse,
  message: Chunks,
  headers?: Record<string, string>,
  status = 200,
): void {
  if (response.destroyed) return;
  const length = byteLength(message);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': length, ...headers });
  if (length <= GATHER_BYTES) {
    // A latin1 string leaves in one write together with the head.
    response.end(
      message.length === 1 ? message[0]!.toString('latin1') : Buffer.concat(message).toString('latin1'),
      'latin1',
    );
    return;
  }
  response.cork();
  for (const part of message) response.write(part);
  response.end();
  response.uncork();
}

/** For requests over a limit. */
export function retryHeaders({ code, data }: SwitchboardError): Record<string, string> {
  const { retryAfterMs } = data;
  if (code !== 'too_many_requests' || typeof retryAfterMs !== 'number') return {};
  return { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) };
}

export function writeFailure(
  response: ServerResponse,
  thrown: unknown,
  headers: Record<string, string> = {},
): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const error = asSwitchboardError(thrown);
  const closing = leavesBody(error.code) ? { connection: 'close' } : {};
  const all = { ...headers, ...retryHeaders(error), ...closing };
  writeJson(response, [errorMessage(undefined, toRpcError(error))], all, error.kind.http);
}

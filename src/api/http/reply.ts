import type { ServerResponse } from 'node:http';
import { leavesBody, SwitchboardError } from '../../errors.ts';
import { retryHeaders } from '../../gateway/http/exchange.ts';
import { maskKeys } from '../../identity/keys.ts';
import type { Reply } from './route.ts';
import { ServerRpcError } from './rpc-error.ts';

interface Versioned {
  version: number | null;
}

export function ok<Body>(body: Body) {
  return { status: 200 as const, body };
}

/** Adds the version as an ETag. */
export function current<View extends Versioned>(view: View) {
  return { status: 200 as const, body: view, headers: etagOf(view) };
}

/** `segments` are the path of the new resource below /api/v1. */
export function created<View extends object>(view: View, ...segments: readonly string[]) {
  const location = ['/api/v1', ...segments.map(encodeURIComponent)].join('/');
  return { status: 201 as const, body: view, headers: { location, ...etagOf(view) } };
}

export const noContent = { status: 204, body: undefined } as const;

/** The version that `If-Match` requires; undefined for any. */
export function versionOf(header: string | undefined): number | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  const version = /^\s*"([1-9]\d{0,14})"\s*$/.exec(header)?.[1];
  if (version !== undefined) return Number(version);
  throw new SwitchboardError(
    'invalid_input',
    'If-Match must be one ETag exactly as received, such as "7" with its quotes, or *.',
  );
}

function etagOf(view: object): Record<string, string> {
  const { version } = view as Partial<Versioned>;
  return typeof version === 'number' ? { etag: `"${version}"` } : {};
}

export class MethodNotAllowed extends SwitchboardError {
  readonly allow: string;

  constructor(allow: string) {
    super('method_not_allowed', `Use ${allow} here.`);
    this.allow = allow;
  }
}

export function send(response: ServerResponse, reply: Reply, isHead: boolean): void {
  if ('stream' in reply) {
    reply.stream(response);
    return;
  }
  const text = 'json' in reply ? reply.json : JSON.stringify(reply.body);
  const bytes = text === undefined ? undefined : Buffer.from(text);
  // The client has disconnected, or a stream failed after it began.
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  response.writeHead(reply.status, {
    ...(bytes === undefined ? {} : { 'content-type': 'application/json', 'content-length': bytes.length }),
    'cache-control': 'no-store',
    ...('headers' in reply ? reply.headers : {}),
  });
  response.end(isHead ? undefined : bytes);
}

export function sendError(
  response: ServerResponse,
  thrown: unknown,
  isHead: boolean,
  more: Record<string, string> = {},
): void {
  const error = clientError(thrown);
  const headers: Record<string, string> = { ...more, ...retryHeaders(error) };
  if (error instanceof MethodNotAllowed) headers.allow = error.allow;
  if (leavesBody(error.code)) headers.connection = 'close';
  const status = error instanceof ServerRpcError ? error.status : error.kind.http;
  send(response, { status, body: { error: errorView(error) }, headers }, isHead);
}

export function errorView(thrown: unknown): { code: string; message: string; details: object } {
  const { code, message, data } = clientError(thrown);
  return { code, message: maskKeys(message), details: withoutKeys(data) };
}

/** What was sent may be a key in the wrong place, and errors end in logs. */
function withoutKeys(data: object): object {
  const text = JSON.stringify(data);
  return text.includes('sbk') ? JSON.parse(maskKeys(text)) : data;
}

/** Clients never see the message of an unexpected error, which may contain secrets. */
function clientError(thrown: unknown): SwitchboardError {
  if (thrown instanceof SwitchboardError) return thrown;
  return new SwitchboardError('internal', 'Something went wrong inside Switchboard.');
}

import type { ServerResponse } from 'node:http';
import { leavesBody, SwitchboardError } from '../../errors.ts';
import type { Reply } from './route.ts';
import { ServerRefusal } from './server-refusal.ts';

export class MethodRefusal extends SwitchboardError {
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
  // A client that is gone, or a stream that was begun before it failed.
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

/** What was thrown and is no error that a client may see is not shown. */
export function sendRefusal(
  response: ServerResponse,
  thrown: unknown,
  isHead: boolean,
  more: Record<string, string> = {},
): void {
  const error =
    thrown instanceof SwitchboardError
      ? thrown
      : new SwitchboardError('internal', 'Something went wrong inside Switchboard.');
  const { code, message, data, kind } = error;
  const headers: Record<string, string> = { ...more };
  if (error instanceof MethodRefusal) headers.allow = error.allow;
  if (leavesBody(code)) headers.connection = 'close';
  const status = error instanceof ServerRefusal ? error.status : kind.http;
  send(response, { status, body: { error: { code, message, details: data } }, headers }, isHead);
}

import type { ServerResponse } from 'node:http';
import type { Chunks } from '../protocol/jsonrpc.ts';
import { sseKeepAlive } from '../protocol/sse.ts';

/** A client that leaves this much unread is disconnected; it can reconnect and resume. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;

const headers = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

export function openEventStream(response: ServerResponse): void {
  response.writeHead(200, headers);
  response.flushHeaders();
}

/** False if the client has disconnected, or is disconnected now because it does not read. */
export function writeEvent(
  response: ServerResponse,
  event: Chunks,
  maxUnreadBytes = MAX_UNREAD_BYTES,
): boolean {
  if (response.destroyed || response.writableEnded) return false;
  if (response.writableLength > maxUnreadBytes) {
    response.destroy();
    return false;
  }
  response.cork();
  for (const part of event) response.write(part);
  response.uncork();
  return true;
}

export function writeKeepAlive(response: ServerResponse): void {
  if (response.writableLength === 0) writeEvent(response, [sseKeepAlive]);
}

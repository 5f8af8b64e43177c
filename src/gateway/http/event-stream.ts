import type { ServerResponse } from 'node:http';
import type { Chunks } from '../../protocol/jsonrpc.ts';
import { sseKeepAlive } from '../../protocol/sse.ts';

/** A client that leaves this much unread is cut off: it can come back and resume, and our memory stays ours. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;

const headers = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

/** Makes an HTTP response an open stream of events. */
export function openEventStream(response: ServerResponse, more: Record<string, string> = {}): void {
  response.writeHead(200, { ...headers, ...more });
  response.flushHeaders();
}

/** False when the client is gone, or was cut off just now because it does not read. */
export function writeEvent(response: ServerResponse, event: Chunks): boolean {
  if (response.destroyed || response.writableEnded) return false;
  if (response.writableLength > MAX_UNREAD_BYTES) {
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

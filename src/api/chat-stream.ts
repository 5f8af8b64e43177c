import type { ServerResponse } from 'node:http';
import { SwitchboardError } from '../errors.ts';
import { sseKeepAlive } from '../protocol/sse.ts';
import type { ChatRun } from './backend.ts';
import { EventReader, eventBytes, KEEP_ALIVE_MS } from './http/event-reader.ts';

/** A model says far less than that before anybody reads it. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

/** Tells a chat as it goes on. Who stops to read ends it. */
export function streamChat(run: ChatRun, response: ServerResponse, signal: AbortSignal): void {
  const reader = new EventReader(MAX_UNREAD_BYTES);
  if (!response.destroyed) reader.begin(response, eventBytes('run', { run_id: run.id }));
  const timer = setInterval(() => reader.tell(sseKeepAlive), KEEP_ALIVE_MS).unref();
  run
    .finish(({ type, data }) => void reader.tell(eventBytes(type, data)), signal)
    .then(
      (view) => reader.tell(eventBytes('done', view)),
      (thrown: unknown) => reader.tell(eventBytes('error', { error: shown(thrown) })),
    )
    .finally(() => {
      clearInterval(timer);
      reader.end();
    });
}

function shown(thrown: unknown): object {
  const isOurs = thrown instanceof SwitchboardError;
  const { code, message, data } = isOurs
    ? thrown
    : new SwitchboardError('internal', 'Something went wrong inside Switchboard.');
  return { code, message, details: data };
}

import type { ServerResponse } from 'node:http';
import { sseKeepAlive } from '../protocol/sse.ts';
import type { Hosted } from './backend.ts';
import type { HostedLine } from './hosted-views.ts';
import { EventReader, eventBytes, KEEP_ALIVE_MS } from './http/event-reader.ts';

/** More than all lines that are kept of a log. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;

/** The logs of hosted servers as Server-Sent Events, for everybody who follows one. */
export class HostedLogs {
  private readonly hosted: Hosted;
  /** What ends each of the streams. */
  private readonly streams = new Set<() => void>();
  private isClosed = false;

  constructor(hosted: Hosted) {
    this.hosted = hosted;
  }

  /** Gives what tells a reader the lines that there are, and from then on those that come, until the reader goes. */
  enter(id: string): (response: ServerResponse) => void {
    const reader = new EventReader(MAX_UNREAD_BYTES);
    const { lines, stop } = this.hosted.followLog(id, {
      line: (line) => tell(lineBytes(line)),
      removed: () => end(),
    });
    const timer = setInterval(() => tell(sseKeepAlive), KEEP_ALIVE_MS).unref();
    const leave = () => {
      if (!this.streams.delete(end)) return;
      clearInterval(timer);
      stop();
    };
    const end = () => {
      leave();
      reader.end();
    };
    const tell = (bytes: Buffer) => {
      if (!reader.tell(bytes)) leave();
    };
    this.streams.add(end);
    if (this.isClosed) end();
    return (response) => {
      if (response.destroyed) {
        leave();
        return;
      }
      response.on('close', leave);
      // The comment lets the head be sent where there is no line yet.
      reader.begin(response, Buffer.concat([sseKeepAlive, ...lines.map(lineBytes)]));
      if (response.req.method === 'HEAD') end();
    };
  }

  /** Ends the streams of all readers. */
  close(): void {
    this.isClosed = true;
    for (const end of this.streams) end();
  }
}

function lineBytes(line: HostedLine): Buffer {
  return eventBytes('line', line);
}

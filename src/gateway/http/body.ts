import type { IncomingMessage } from 'node:http';
import { SwitchboardError } from '../../errors.ts';
import { Gathered } from '../../protocol/gathered.ts';

/** Many clients read an answer only when they have sent everything: so much too much is read and thrown away. */
const DISCARD_BYTES = 64 * 1024 * 1024;

/** Anybody's page can make a browser post a form or plain text; for JSON the browser asks us first. */
export function checkMediaType({ headers: { 'content-type': type } }: IncomingMessage): void {
  if (type !== undefined && /^application\/json\s*(;|$)/i.test(type)) return;
  throw new SwitchboardError('unsupported_media_type', 'The Content-Type must be application/json.');
}

/** Reads the body of a request, up to the limit. A client that goes away in between is nobody's error. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  done: (error: SwitchboardError | undefined, body: Buffer) => void,
): void {
  const refuse = () => {
    request.removeAllListeners('data');
    request.removeAllListeners('end');
    done(new SwitchboardError('too_large', `The message is over ${maxBytes} bytes.`), Buffer.alloc(0));
  };
  if (Number(request.headers['content-length'] ?? 0) > maxBytes + DISCARD_BYTES) {
    refuse();
    return;
  }
  const body = new Gathered();
  let length = 0;
  request.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length <= maxBytes) {
      body.add(chunk);
    } else {
      body.clear();
      if (length > maxBytes + DISCARD_BYTES) refuse();
    }
  });
  request.on('end', () => {
    if (length > maxBytes) refuse();
    else done(undefined, body.join());
  });
}

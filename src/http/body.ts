import type { IncomingMessage } from 'node:http';
import { SwitchboardError } from '../errors.ts';
import { Gathered } from '../protocol/gathered.ts';

/** Many clients read the response only after they have sent everything, so this much beyond the limit is read and discarded. */
const DISCARD_BYTES = 64 * 1024 * 1024;

/** Never calls back if the client disconnects first. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  done: (error: SwitchboardError | undefined, body: Buffer) => void,
): void {
  const reject = () => {
    request.removeAllListeners('data');
    request.removeAllListeners('end');
    done(new SwitchboardError('too_large', `The body is over ${maxBytes} bytes.`), Buffer.alloc(0));
  };
  if (Number(request.headers['content-length'] ?? 0) > maxBytes + DISCARD_BYTES) {
    reject();
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
      if (length > maxBytes + DISCARD_BYTES) reject();
    }
  });
  request.on('end', () => {
    if (length > maxBytes) reject();
    else done(undefined, body.join());
  });
}

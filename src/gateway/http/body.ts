import type { IncomingMessage } from 'node:http';
import { SwitchboardError } from '../../errors.ts';

/** Reads the body of a request, up to the limit. A client that goes away in between is nobody's error. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  done: (error: SwitchboardError | undefined, body: Buffer) => void,
): void {
  const tooLarge = () => new SwitchboardError('too_large', `The message is over ${maxBytes} bytes.`);
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) {
    done(tooLarge(), Buffer.alloc(0));
    return;
  }
  let first: Buffer | undefined;
  let more: Buffer[] | undefined;
  let length = 0;
  request.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length > maxBytes) {
      request.removeAllListeners('data');
      request.removeAllListeners('end');
      done(tooLarge(), Buffer.alloc(0));
    } else if (first === undefined) {
      first = chunk;
    } else {
      more ??= [first];
      more.push(chunk);
    }
  });
  request.on('end', () =>
    done(undefined, more === undefined ? (first ?? Buffer.alloc(0)) : Buffer.concat(more)),
  );
}

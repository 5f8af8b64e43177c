import { isUtf8 } from 'node:buffer';
import { SwitchboardError } from '../errors.ts';
import { type Message, readMessage } from './envelope.ts';
import { JsonScanner, JsonSyntaxError } from './json-scanner.ts';
import { LARGE_BYTES, type Rest, walkLarge } from './large-walk.ts';

/** Reads one large message as `readMessage` does. `rest` lets others have their turn in between. */
export async function readLargeMessage(bytes: Buffer, rest?: Rest): Promise<Message> {
  if (!isUtf8(bytes)) throw new SwitchboardError('parse_error', 'The message is not valid UTF-8.');
  if (new JsonScanner(bytes).peek() === OPEN_LIST)
    throw new SwitchboardError(
      'invalid_request',
      `A batch has ${LARGE_BYTES} bytes at the most: send its messages one by one.`,
    );
  try {
    const { passed } = await walkLarge(bytes, undefined, rest);
    return readMessage(bytes, passed);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new SwitchboardError('parse_error', `The message is not valid JSON: ${error.message}.`);
  }
}

const OPEN_LIST = 0x5b;

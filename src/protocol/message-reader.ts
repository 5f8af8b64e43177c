import { isUtf8 } from 'node:buffer';
import { SwitchboardError } from '../errors.ts';
import { EnvelopeReader } from './envelope.ts';
import { OPEN_LIST } from './json-bytes.ts';
import { JsonScanner, JsonSyntaxError, type Passed } from './json-scanner.ts';
import { LARGE_BYTES, type Rest, walkLarge } from './large-walk.ts';
import { parseLossless } from './lossless.ts';
import type { Message } from './message.ts';

/** More than any client sends at once: each entry costs far more than its bytes. */
const MAX_BATCH = 1_000;
/** What is rebuilt is parsed in one go. */
const MAX_REBUILT_BYTES = 1024 * 1024;

/**
 * Reads one message. Where two parsers could read two things out of the same bytes (a key twice, a key spelled
 * with escapes), the message is rebuilt so that there is only one reading left, and that one is used. `passed` is given
 * where all of the text was checked before.
 */
export function readMessage(bytes: Buffer, passed?: Passed): Message {
  if (passed === undefined && !isUtf8(bytes))
    throw new SwitchboardError('parse_error', 'The message is not valid UTF-8.');
  try {
    return new EnvelopeReader(bytes, passed).read() ?? readRebuilt(bytes);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new SwitchboardError('parse_error', `The message is not valid JSON: ${error.message}.`);
  }
}

/** The messages of a JSON-RPC batch, or undefined when the bytes are not an array. */
export function splitBatch(bytes: Buffer): Buffer[] | undefined {
  const scanner = new JsonScanner(bytes);
  if (scanner.peek() !== OPEN_LIST) return undefined;
  const items: Buffer[] = [];
  try {
    scanner.array(() => {
      if (items.length === MAX_BATCH)
        throw new SwitchboardError(
          'invalid_request',
          `The batch has more than ${MAX_BATCH} messages: send several smaller ones.`,
        );
      const { start, end } = scanner.span();
      items.push(bytes.subarray(start, end));
    });
    scanner.expectEnd();
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new SwitchboardError('parse_error', `The batch is not valid JSON: ${error.message}.`);
  }
  return items;
}

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

function readRebuilt(bytes: Buffer): Message {
  if (bytes.length > MAX_REBUILT_BYTES)
    throw new SwitchboardError(
      'invalid_request',
      `The message has keys that are there twice or are written with escapes, which is taken up to ${MAX_REBUILT_BYTES} bytes only.`,
    );
  const rebuilt = Buffer.from(JSON.stringify(parseLossless(bytes.toString())));
  const message = new EnvelopeReader(rebuilt).read();
  if (message === undefined) throw new SwitchboardError('invalid_request', 'The message has ambiguous keys.');
  return message;
}

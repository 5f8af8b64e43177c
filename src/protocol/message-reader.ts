import { isUtf8 } from 'node:buffer';
import { SwitchboardError } from '../errors.ts';
import { EnvelopeReader } from './envelope.ts';
import { OPEN_LIST } from './json-bytes.ts';
import { JsonScanner, JsonSyntaxError, type Passed } from './json-scanner.ts';
import { LARGE_BYTES, type Rest, walkLarge } from './large-walk.ts';
import { parseLossless } from './lossless.ts';
import type { Message } from './message.ts';

/** An entry costs far more than its bytes, and no client sends this many. */
const MAX_BATCH = 1_000;
/** Rebuilding parses the message at once. */
const MAX_REBUILT_BYTES = 1024 * 1024;

/**
 * Parses one message. If parsers could disagree about it (duplicate keys, keys with escapes), it is rebuilt so that
 * only one reading is left. `passed` is set if the text was validated before.
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

/** The messages of a JSON-RPC batch; undefined if it is not an array. */
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

/** Like `readMessage`, in slices. `rest` lets other work run. */
export async function readLargeMessage(bytes: Buffer, rest?: Rest): Promise<Message> {
  if (!isUtf8(bytes)) throw new SwitchboardError('parse_error', 'The message is not valid UTF-8.');
  if (new JsonScanner(bytes).peek() === OPEN_LIST)
    throw new SwitchboardError(
      'invalid_request',
      `A batch may have at most ${LARGE_BYTES} bytes: send its messages one by one.`,
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
      `The message has duplicate keys, or keys with escapes. Such a message may have at most ${MAX_REBUILT_BYTES} bytes.`,
    );
  const rebuilt = Buffer.from(JSON.stringify(parseLossless(bytes.toString())));
  const message = new EnvelopeReader(rebuilt).read();
  if (message === undefined) throw new SwitchboardError('invalid_request', 'The message has ambiguous keys.');
  return message;
}

import { setTimeout as delay, setImmediate as immediately } from 'node:timers/promises';
import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import { join } from '../../protocol/jsonrpc.ts';
import { LineSplitter } from '../../protocol/lines.ts';
import { readMessage } from '../../protocol/message-reader.ts';
import { MAX_BYTES, type RunningSwitchboard, reject } from './client.ts';
import { LegacySession } from './legacy-session.ts';
import { ModernRequests } from './modern-requests.ts';

const LAST_RESPONSES_MS = 30_000;

/** Speaks MCP of both eras on stdin and stdout, and passes everything to the running Switchboard. Ends with stdin. */
export async function bridge(switchboard: RunningSwitchboard): Promise<void> {
  await switchboard.ensureRunning();
  const [legacy, modern] = [new LegacySession(switchboard), new ModernRequests(switchboard)];
  // A client may use both eras.
  const receive = (line: Buffer) => {
    try {
      const message = readMessage(line);
      (modern.takes(message) ? modern : legacy).receive(message);
    } catch (error) {
      reject(undefined, asSwitchboardError(error));
    }
  };
  const isAborted = await readLines(receive);
  // A program that pipes requests in closes the pipe after them, and still expects the responses.
  if (!isAborted) {
    // Two turns, like the last lines.
    await immediately();
    await immediately();
    const settled = Promise.all([legacy.settled(), modern.settled()]);
    await Promise.race([settled, delay(LAST_RESPONSES_MS, undefined, { ref: false })]);
  }
  const why = 'switchboard stdio ended before the response arrived.';
  for (const era of [legacy, modern]) era.failAll(new SwitchboardError('server_unavailable', why));
  await Promise.all([legacy.close(), modern.close()]);
  // After a signal, an open stdin would keep the process alive.
  process.stdin.destroy();
}

/** Resolves with true if it was aborted. */
function readLines(receive: (line: Buffer) => void): Promise<boolean> {
  return new Promise((resolve) => {
    const lines = new LineSplitter(MAX_BYTES, {
      line: (chunks) => {
        const line = join(chunks);
        // Network events come first: in one turn of the event loop a stream ends and frees its connection, and in the next one
        // that connection is seen to be closed. It must not carry the message.
        setImmediate(() => setImmediate(() => receive(line)));
      },
      tooLong: () =>
        reject(undefined, new SwitchboardError('too_large', `The message is over ${MAX_BYTES} bytes.`)),
    });
    process.stdin.on('data', (chunk: Buffer) => lines.push(chunk));
    process.stdin.on('end', () => {
      lines.end();
      resolve(false);
    });
    process.stdin.on('error', () => resolve(true));
    process.stdout.on('error', () => resolve(true));
    process.once('SIGTERM', () => resolve(true));
    process.once('SIGINT', () => resolve(true));
  });
}

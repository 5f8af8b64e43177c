import { setTimeout as delay, setImmediate as immediately } from 'node:timers/promises';
import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import { readMessage } from '../../protocol/envelope.ts';
import { join } from '../../protocol/jsonrpc.ts';
import { LineSplitter } from '../../protocol/lines.ts';
import { MAX_BYTES, refuse } from './client.ts';
import { LegacySession } from './legacy-session.ts';
import { ModernRequests } from './modern-requests.ts';
import type { Switchboard } from './switchboard.ts';

const LAST_ANSWERS_MS = 30_000;

/** Speaks MCP of both eras on stdin and stdout, and passes everything to the running Switchboard. Ends with stdin. */
export async function bridge(switchboard: Switchboard): Promise<void> {
  await switchboard.ensureRunning();
  const eras: Eras = { legacy: new LegacySession(switchboard), modern: new ModernRequests(switchboard) };
  const isOver = await new Promise<boolean>((resolve) => {
    const lines = new LineSplitter(MAX_BYTES, {
      line: (chunks) => {
        const line = join(chunks);
        // What the network says comes first: in one turn of the loop a stream ends and frees its connection, in the
        // next one that connection is seen to be closed. It must not carry the message.
        setImmediate(() => setImmediate(() => receive(line, eras)));
      },
      tooLong: () => refuse(new SwitchboardError('too_large', `The message is over ${MAX_BYTES} bytes.`)),
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
  // Whoever pipes requests in closes the pipe behind them, and still wants the answers.
  if (!isOver) await Promise.race([answered(eras), delay(LAST_ANSWERS_MS, undefined, { ref: false })]);
  const error = new SwitchboardError(
    'server_unavailable',
    'switchboard stdio was ended before the answer came.',
  );
  for (const era of [eras.legacy, eras.modern]) era.failAll(error);
  await Promise.all([eras.legacy.close(), eras.modern.close()]);
  // An open stdin would keep the process where a signal ended it.
  process.stdin.destroy();
}

/** A client may speak both: every message tells for itself. */
interface Eras {
  legacy: LegacySession;
  modern: ModernRequests;
}

function receive(line: Buffer, { legacy, modern }: Eras): void {
  try {
    const message = readMessage(line);
    if (modern.takes(message)) modern.receive(message);
    else legacy.receive(message);
  } catch (error) {
    refuse(asSwitchboardError(error));
  }
}

/** Settles when every request of the client has its answer. */
async function answered({ legacy, modern }: Eras): Promise<void> {
  // Two turns, as the lines had that were read last.
  await immediately();
  await immediately();
  await Promise.all([legacy.answered(), modern.answered()]);
}

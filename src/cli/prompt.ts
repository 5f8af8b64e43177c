import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { usageError } from './exit.ts';
import { printable } from './output.ts';

interface ConfirmationFlags {
  yes?: boolean;
}

/** Whether there is somebody to ask. Questions go to stderr: what is printed may be read by a program. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** Asks on a terminal. Elsewhere it goes on, but where so much is lost that it needs --yes. */
export async function isConfirmed(
  question: string,
  { yes }: ConfirmationFlags,
  elsewhere: 'goes-on' | 'needs-yes',
): Promise<boolean> {
  if (yes) return true;
  if (canAsk()) return /^y(es)?$/i.test((await ask(`${question} [y/N] `)).trim());
  if (elsewhere === 'goes-on') return true;
  throw usageError('Nobody can be asked here whether that is really meant: say --yes. Nothing was removed.');
}

function ask(question: string): Promise<string> {
  return readAnswer(printable(question), process.stderr);
}

/** Asks for what must not be seen on the screen. */
export async function askHidden(question: string): Promise<string> {
  process.stderr.write(printable(question));
  const answer = await readAnswer('', new Writable({ write: (_chunk, _encoding, done) => done() }));
  process.stderr.write('\n');
  return answer;
}

function readAnswer(question: string, output: Writable): Promise<string> {
  const lines = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 });
  return new Promise((resolve) => {
    lines.on('SIGINT', () => {
      process.stderr.write('\n');
      lines.close();
      process.exit(130);
    });
    // The end of the input, Ctrl-D, is no answer.
    lines.on('close', () => resolve(''));
    lines.question(question, (answer) => {
      resolve(answer);
      lines.close();
    });
  });
}

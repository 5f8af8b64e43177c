import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { callApi } from './api.ts';
import { exitCodes, usageError } from './exit.ts';
import type { ApiFlags } from './options.ts';
import { complain, printable, printResult } from './output.ts';

/** Prompts use stderr, because a program may read stdout. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** Asks on a terminal before a removal. Scripts proceed without --yes, unless the loss is too large. */
export async function confirmRemoval(
  question: string,
  { yes }: { yes?: boolean },
  inScripts: 'proceed' | 'needs-yes' = 'proceed',
): Promise<boolean> {
  if (yes || (!canAsk() && inScripts === 'proceed')) return true;
  if (!canAsk())
    throw usageError('Cannot ask for confirmation without a terminal: use --yes. Nothing was removed.');
  const answer = await readAnswer(printable(`${question} [y/N] `), process.stderr);
  const isConfirmed = /^y(es)?$/i.test(answer.trim());
  if (!isConfirmed) complain('Nothing was removed.');
  return isConfirmed;
}

/** Returns the exit code. */
export async function removeConfirmed(
  flags: ApiFlags & { yes?: boolean },
  question: string,
  path: string,
  what: string,
  name: string,
): Promise<number> {
  if (!(await confirmRemoval(question, flags))) return exitCodes.failed;
  await callApi(flags.url, 'DELETE', path);
  printResult({ removed: name }, `removed ${what} ${name}`, flags);
  return exitCodes.ok;
}

/** Reads a value without echo. */
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
    // Ctrl-D closes the input without an answer.
    lines.on('close', () => resolve(''));
    lines.question(question, (answer) => {
      resolve(answer);
      lines.close();
    });
  });
}

import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { callApi } from './api.ts';
import { exitCodes, usageError } from './exit.ts';
import type { ApiFlags } from './options.ts';
import { complain, printable, printResult } from './output.ts';

/** Whether a user can be asked. Questions go to stderr, because stdout may be read by a program. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/**
 * Asks on a terminal before something is removed. Scripts are not asked: they proceed, unless so much is lost that it
 * needs --yes.
 */
export async function confirmRemoval(
  question: string,
  { yes }: { yes?: boolean },
  inScripts: 'proceed' | 'needs-yes' = 'proceed',
): Promise<boolean> {
  if (yes || (!canAsk() && inScripts === 'proceed')) return true;
  if (!canAsk()) throw usageError('There is no terminal to confirm this on: use --yes. Nothing was removed.');
  const answer = await readAnswer(printable(`${question} [y/N] `), process.stderr);
  const isConfirmed = /^y(es)?$/i.test(answer.trim());
  if (!isConfirmed) complain('Nothing was removed.');
  return isConfirmed;
}

/** Removes something of the API, after a confirmation. Gives the exit code. */
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

/** Asks for a value that is not shown on the screen. */
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
    // Ctrl-D ends the input without an answer.
    lines.on('close', () => resolve(''));
    lines.question(question, (answer) => {
      resolve(answer);
      lines.close();
    });
  });
}

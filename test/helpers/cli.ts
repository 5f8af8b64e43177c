import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const main = join(import.meta.dirname, '../../src/main.ts');

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a command of the real program to its end. */
export async function runCli(
  words: string[],
  { cwd, env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<Finished> {
  const child = spawn(process.execPath, [main, ...words], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/** A folder that is gone after the test. */
export async function temporaryFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

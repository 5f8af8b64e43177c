import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { Inbox } from './inbox.ts';
import { mainEnvironment, mainProgram } from './programs.ts';

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

export async function runCli(
  words: string[],
  { cwd, env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<Finished> {
  const child = spawn(process.execPath, [mainProgram, ...words], {
    cwd,
    env: { ...process.env, ...mainEnvironment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

export interface RunningCli extends AsyncDisposable {
  process: ChildProcess;
  lines: Inbox<string>;
  finished: Promise<Omit<Finished, 'stdout'>>;
}

/** Starts a command that does not exit on its own. */
export function startCli(words: string[], env: Record<string, string> = {}): RunningCli {
  const child = spawn(process.execPath, [mainProgram, ...words], {
    env: { ...process.env, ...mainEnvironment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines = new Inbox<string>();
  createInterface({ input: child.stdout }).on('line', (line) => lines.add(line));
  const exited = once(child, 'exit') as Promise<[number | null]>;
  const finished = Promise.all([text(child.stderr), exited]).then(([stderr, [code]]) => ({ code, stderr }));
  return {
    process: child,
    lines,
    finished,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await finished;
    },
  };
}

export async function temporaryFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface ClientScene {
  url: string;
  folder: string;
  tool: string;
  input: Record<string, unknown>;
}

/** How many tools a client saw, and the result of its call. */
export interface Shown {
  tools: number;
  text: string;
}

interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** Includes its stderr. */
  withErrors?: boolean;
}

export function installedIn(path: string): string {
  return join(import.meta.dirname, 'clients/node_modules', path);
}

export function runNode(program: string, args: string[], options: RunOptions = {}): Promise<string> {
  return runProgram(process.execPath, [program, ...args], options);
}

/** Runs a program to its end with an empty stdin and only PATH from our environment. Returns its output. */
export async function runProgram(
  program: string,
  args: string[],
  { cwd, env = {}, withErrors = false }: RunOptions = {},
): Promise<string> {
  const child = spawn(program, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = once(child, 'close');
  const [stdout, stderr] = await Promise.all([child.stdout.toArray(), child.stderr.toArray()]);
  const [said, complaints] = [stdout, stderr].map((chunks) => Buffer.concat(chunks).toString());
  const [code] = await closed;
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${said}${complaints}`);
  return withErrors ? `${said}${complaints}` : said!;
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** What a client is given: an address, a folder of its own, and a tool to call. */
export interface ClientScene {
  url: string;
  folder: string;
  tool: string;
  input: Record<string, unknown>;
}

/** What a client saw: how many tools there are, and what the tool gave. */
export interface Shown {
  tools: number;
  text: string;
}

interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** Gives what it wrote to stderr, too. */
  withErrors?: boolean;
}

/** A file of a package that is installed in test/real/clients. */
export function installedIn(path: string): string {
  return join(import.meta.dirname, 'clients/node_modules', path);
}

export function runNode(program: string, args: string[], options: RunOptions = {}): Promise<string> {
  return runProgram(process.execPath, [program, ...args], options);
}

/** Runs a program to its end, with nothing on stdin and nothing of our environment but PATH. Gives what it printed. */
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

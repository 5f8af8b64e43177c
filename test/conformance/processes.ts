import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { fixtureProgram } from '../helpers/programs.ts';

const _root = fileURLToPath(new URL('../..', import.meta.url));

/** The servers to check, by era. */
export const fixturePaths = {
  legacy: fixtureProgram('conformance-server'),
  modern: fixtureProgram('conformance-modern-server'),
  both: fixtureProgram('conformance-dual-server'),
};

interface Endpoint {
  url: string;
  [Symbol.asyncDispose](): Promise<void>;
}

export function startFixture(era: keyof typeof fixturePaths): Promise<Endpoint> {
  return startEndpoint([fixturePaths[era], '--http', '--port', '0']);
}

/** Starts a program that prints a JSON line with its `url` once it serves. */
async function startEndpoint(programArguments: string[]): Promise<Endpoint> {
  const child = spawn(process.execPath, programArguments, { stdio: ['ignore', 'pipe', 'pipe'] });
  const complaints = text(child.stderr);
  const { promise: serving, resolve, reject } = Promise.withResolvers<string>();
  // Read to the end, because a full pipe would block the program.
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    const announced = announcement.safeParse(parseJson(line));
    if (announced.success) resolve(announced.data.url);
  });
  lines.on('close', async () => {
    reject(new Error(`${programArguments.join(' ')} ended before it served:\n${await complaints}`));
  });
  return { url: await serving, [Symbol.asyncDispose]: () => stop(child) };
}

const announcement = z.object({ url: z.string() });

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}

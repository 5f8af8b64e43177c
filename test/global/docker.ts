import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder for the Docker engines of this run. */
    docker: string;
  }
}

/** Makes a folder for the engines that tests start, and ends after the last test what is in it. */
export default async function setup(project: Pick<TestProject, 'provide'>): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-docker-'));
  const cleaner = cleanWhenGone(folder);
  project.provide('docker', folder);
  return async () => {
    const cleaned = once(cleaner, 'exit');
    cleaner.stdin!.end();
    const [code] = await cleaned;
    if (code !== 0) throw new Error(`The Docker engines of the tests left something behind in ${folder}`);
  };
}

/** Cleans when it is told to, and also when we are gone without a word. A run without an engine has only a folder to remove. */
function cleanWhenGone(folder: string): ChildProcess {
  const program = join(import.meta.dirname, '../helpers/engine-remains.ts');
  const script = 'cat > /dev/null; rmdir "$2" 2> /dev/null || exec "$0" "$1" "$2"';
  return spawn('sh', ['-c', script, process.execPath, program, folder], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  });
}

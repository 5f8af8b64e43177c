import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the programs that tests run, compiled once: stripping types at every start takes longer than most tests. */
    programs: string;
  }
}

const root = join(import.meta.dirname, '../..');

/** Compiles before the first test, and removes it after the last one. Inside of the clone, so that packages are found. */
export default async function setup(project: Pick<TestProject, 'provide'>): Promise<() => Promise<void>> {
  await mkdir(join(root, '.cache'), { recursive: true });
  const folder = await mkdtemp(join(root, '.cache', 'programs-'));
  // The program reads its version there.
  await cp(join(root, 'package.json'), join(folder, 'package.json'));
  await promisify(execFile)(process.execPath, [join(root, 'scripts/build.mjs'), folder]);
  project.provide('programs', folder);
  return () => rm(folder, { recursive: true, maxRetries: 20, retryDelay: 50 });
}

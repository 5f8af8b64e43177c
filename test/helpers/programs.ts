import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

/** The compiled programs of this test run; undefined elsewhere: then the sources run. TEST_PROGRAMS passes it on. */
export const programsFolder = process.env.TEST_PROGRAMS ?? (await providedFolder());

async function providedFolder(): Promise<string | undefined> {
  return process.env.VITEST === undefined ? undefined : (await import('vitest')).inject('programs');
}

export const mainProgram =
  programsFolder === undefined ? join(root, 'src/main.ts') : join(programsFolder, 'dist/main.js');

/** Hundreds of processes run the same program, so they share Node's compile cache. */
export const mainEnvironment: Record<string, string> =
  programsFolder === undefined ? {} : { NODE_COMPILE_CACHE: join(programsFolder, 'compiled') };

export function fixtureProgram(name: string): string {
  return programsFolder === undefined
    ? join(root, 'test/fixtures', `${name}.ts`)
    : join(programsFolder, 'fixtures', `${name}.js`);
}

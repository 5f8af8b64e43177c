import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
/** Only a run of tests has compiled programs; what else uses these helpers runs the sources. */
const compiled = process.env.VITEST === undefined ? undefined : (await import('vitest')).inject('programs');

/** The program that `switchboard` is. */
export const mainProgram = compiled?.main ?? join(root, 'src/main.ts');

/** A program of test/fixtures. */
export function fixtureProgram(name: string): string {
  return compiled === undefined
    ? join(root, 'test/fixtures', `${name}.ts`)
    : join(compiled.fixtures, `${name}.js`);
}

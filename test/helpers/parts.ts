import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

/** A program that scripts/setup.mjs installs for the tests, beside the npm packages. */
interface Part {
  command: string;
  /** Environment that the program needs; a server's `env` takes it as it is. */
  env: Record<string, string>;
}

const record = z.union([
  z.object({ command: z.string(), env: z.record(z.string(), z.string()) }),
  z.object({ missing: z.string() }),
]);

type PartName =
  | 'uvx'
  | 'postgres'
  | 'schemathesis'
  | 'docker'
  | 'runsc'
  | 'python-sdk-1'
  | 'python-sdk-2'
  | 'go-client';

const cache = fileURLToPath(new URL('../../.cache', import.meta.url));

/** What setup wrote down about the part: where it is, or why it is not there. */
export function findPart(name: PartName, folder = cache): Part | { missing: string } {
  const path = join(folder, `${name}.json`);
  if (!existsSync(path)) return { missing: 'node scripts/setup.mjs --test has not run' };
  return record.parse(JSON.parse(readFileSync(path, 'utf8')));
}

/** Gives the part, or skips the test and says why; in CI nothing is skipped, so there it fails. */
export function requirePart(name: PartName, test: { skip(note: string): never }, folder = cache): Part {
  const part = findPart(name, folder);
  if ('command' in part) return part;
  const { CI } = process.env;
  if (CI !== undefined && CI !== '' && CI !== 'false') throw new Error(`CI needs ${name}: ${part.missing}`);
  return test.skip(`needs ${name}: ${part.missing}`);
}

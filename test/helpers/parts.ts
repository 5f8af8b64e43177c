import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

/** A program that scripts/setup.mjs installs for the tests. */
interface Part {
  command: string;
  /** Environment that the program needs, in the format of a server's `env`. */
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
  | 'go-client'
  | 'nginx'
  | 'caddy';

const cache = fileURLToPath(new URL('../../.cache', import.meta.url));

/** The record of setup: the path, or why it is missing. */
export function findPart(name: PartName, folder = cache): Part | { missing: string } {
  const path = join(folder, `${name}.json`);
  if (!existsSync(path)) return { missing: 'node scripts/setup.mjs --test has not run' };
  return record.parse(JSON.parse(readFileSync(path, 'utf8')));
}

/** Skips the test if the program is missing; in CI it fails instead. */
export function requirePart(name: PartName, test: { skip(note: string): never }, folder = cache): Part {
  const part = findPart(name, folder);
  if ('command' in part) return part;
  const { CI } = process.env;
  if (CI !== undefined && CI !== '' && CI !== 'false') throw new Error(`CI needs ${name}: ${part.missing}`);
  return test.skip(`needs ${name}: ${part.missing}`);
}

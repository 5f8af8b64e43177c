import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Records where a part for the tests is, or why it is missing, for test/helpers/parts.ts. A missing part is no failure:
 * the tests that need it are skipped.
 */
export function recordPart(cache, { name, recipe, what = name }, missing, command, env = {}) {
  const part = missing === undefined ? { recipe, command, env } : { recipe, missing };
  mkdirSync(cache, { recursive: true });
  writeFileSync(pathOf(cache, name), `${JSON.stringify(part, undefined, 2)}\n`);
  if (missing !== undefined) console.warn(`setup: the tests with ${what} will be skipped: ${missing}`);
}

/** Whether the recorded part was made by this recipe and still exists. */
export function partIsCurrent(cache, { name, recipe }) {
  if (!existsSync(pathOf(cache, name))) return false;
  const part = JSON.parse(readFileSync(pathOf(cache, name), 'utf8'));
  return part.recipe === recipe && part.command !== undefined && existsSync(part.command);
}

function pathOf(cache, name) {
  return join(cache, `${name}.json`);
}

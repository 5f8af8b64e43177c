import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Writes down where a part of the tests is, or why it is not there, for test/helpers/parts.ts. */
export function recordPart(cache, name, part) {
  mkdirSync(cache, { recursive: true });
  writeFileSync(pathOf(cache, name), `${JSON.stringify(part, undefined, 2)}\n`);
}

/** Whether the part that was written down was made by this recipe, and is still there. */
export function partIsCurrent(cache, name, recipe) {
  if (!existsSync(pathOf(cache, name))) return false;
  const part = JSON.parse(readFileSync(pathOf(cache, name), 'utf8'));
  return part.recipe === recipe && part.command !== undefined && existsSync(part.command);
}

function pathOf(cache, name) {
  return join(cache, `${name}.json`);
}

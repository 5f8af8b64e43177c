import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { installDebian } from './apt.mjs';
import { partIsCurrent, recordPart } from './record.mjs';

// Each is a part, and the Debian package that brings its program.
const programs = [
  { name: 'docker', program: 'dockerd', debian: 'docker.io', what: 'the Docker engine' },
  { name: 'runsc', program: 'runsc', debian: 'runsc', what: 'gVisor' },
];

/**
 * Debian's Docker engine and gVisor, for the tests with containers, which start an engine of their own. Where they cannot
 * be had, that is written down for test/helpers/parts.ts and not thrown.
 */
export async function installDocker(cache) {
  for (const { name, program, debian, what } of programs) {
    const missing = isRoot() ? await install(program, debian, what) : 'only root can run containers';
    const recipe = recipeOf(debian);
    const part = missing === undefined ? { recipe, command: find(program), env: {} } : { recipe, missing };
    recordPart(cache, name, part);
    if (missing !== undefined) console.warn(`setup: the tests with ${what} will be skipped: ${missing}`);
  }
}

/** Nobody but root can use them, so for others they are not there. */
export function dockerIsCurrent(cache) {
  return isRoot() && programs.every(({ name, debian }) => partIsCurrent(cache, name, recipeOf(debian)));
}

/** Gives why it could not be had; undefined: it is there. */
async function install(program, debian, what) {
  if (find(program) !== undefined) return undefined;
  const missing = await installDebian([debian], what);
  if (missing !== undefined) return missing;
  return find(program) === undefined ? `Debian's ${debian} has brought no ${program}` : undefined;
}

/** Debian has it among the programs of root, which not every PATH has. */
function find(program) {
  const folders = ['/usr/sbin', '/usr/bin', ...(process.env.PATH ?? '').split(delimiter)];
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
}

function isRoot() {
  return process.getuid?.() === 0;
}

function recipeOf(debian) {
  return `Debian's ${debian}`;
}

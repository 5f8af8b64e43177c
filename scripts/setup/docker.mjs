import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { installDebian } from './apt.mjs';
import { partIsCurrent, recordPart } from './record.mjs';

// Each is a part: its program, what else the tests run of it, and the Debian packages that bring them.
const parts = [
  {
    name: 'docker',
    program: 'dockerd',
    others: ['ip', 'mkfs.btrfs', 'mkfs.ext4', 'e2fsck', 'resize2fs', 'losetup', 'mount', 'umount'],
    debian: ['docker.io', 'iproute2', 'btrfs-progs', 'e2fsprogs', 'util-linux', 'mount'],
    what: 'the Docker engine',
  },
  { name: 'runsc', program: 'runsc', others: [], debian: ['runsc'], what: 'gVisor' },
];

/**
 * Debian's Docker engine and gVisor, for the tests with containers, which start an engine of their own. Where they cannot
 * be had, that is written down for test/helpers/parts.ts and not thrown.
 */
export async function installDocker(cache) {
  for (const part of parts) {
    const missing = isRoot() ? await install(part) : 'only root can run containers';
    const recipe = recipeOf(part);
    const found = { recipe, command: find(part.program), env: {} };
    recordPart(cache, part.name, missing === undefined ? found : { recipe, missing });
    if (missing !== undefined) console.warn(`setup: the tests with ${part.what} will be skipped: ${missing}`);
  }
}

/** Nobody but root can use them, so for others they are not there. */
export function dockerIsCurrent(cache) {
  return isRoot() && parts.every((part) => partIsCurrent(cache, part.name, recipeOf(part)));
}

/** Gives why it could not be had; undefined: it is there. */
async function install({ program, others, debian, what }) {
  const absent = () => [program, ...others].find((name) => find(name) === undefined);
  if (absent() === undefined) return undefined;
  const missing = await installDebian(debian, what);
  if (missing !== undefined) return missing;
  return absent() === undefined ? undefined : `Debian's ${debian.join(', ')} brought no ${absent()}`;
}

/** Debian has it among the programs of root, which not every PATH has. */
function find(program) {
  const folders = ['/usr/sbin', '/usr/bin', ...(process.env.PATH ?? '').split(delimiter)];
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
}

function isRoot() {
  return process.getuid?.() === 0;
}

function recipeOf({ debian }) {
  return `Debian's ${debian.join(', ')}`;
}

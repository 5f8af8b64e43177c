import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { installDebian } from './apt.mjs';
import { partIsCurrent, recordPart } from './record.mjs';

// The program of each part, other programs that the tests use, and the Debian packages with them.
const parts = [
  {
    name: 'docker',
    program: 'dockerd',
    others: ['ip', 'mkfs.btrfs', 'mkfs.ext4', 'e2fsck', 'resize2fs', 'losetup', 'mount', 'umount'],
    debian: ['docker.io', 'iproute2', 'btrfs-progs', 'e2fsprogs', 'util-linux', 'mount'],
    what: 'the Docker engine',
  },
  { name: 'runsc', program: 'runsc', others: [], debian: ['runsc'], what: 'gVisor' },
].map((part) => ({ ...part, recipe: `Debian's ${part.debian.join(', ')}` }));

/** Installs Debian's Docker engine and gVisor, for the tests with containers, which start their own engine. */
export function dockerStep(cache) {
  return {
    // Only root can use them, so for others they stay missing.
    done: () => isRoot() && parts.every((part) => partIsCurrent(cache, part)),
    run: async () => {
      for (const part of parts) {
        const missing = isRoot() ? await install(part) : 'only root can run containers';
        recordPart(cache, part, missing, find(part.program));
      }
    },
  };
}

/** Resolves with the reason if it cannot be installed. */
async function install({ program, others, debian, what, recipe }) {
  const absent = () => [program, ...others].find((name) => find(name) === undefined);
  if (absent() === undefined) return undefined;
  const missing = await installDebian(debian, what);
  if (missing !== undefined) return missing;
  return absent() === undefined ? undefined : `${recipe} did not install ${absent()}`;
}

/** Debian installs some of them in /usr/sbin, which is not in every PATH. */
function find(program) {
  const folders = ['/usr/sbin', '/usr/bin', ...(process.env.PATH ?? '').split(delimiter)];
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
}

function isRoot() {
  return process.getuid?.() === 0;
}

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run, SetupError } from './run.mjs';

// The same as in bin/switchboard.js.
const needed = 24;

/** The reason if the locked Node for this platform is not installed. */
export function whyNoNode(folder) {
  const locked = findNode(folder);
  if (locked === undefined || existsSync(join(folder, locked.program))) return undefined;
  return `${locked.program} is missing`;
}

/** After set-up, scripts run on the clone's Node, or on this one if there is none for the platform. */
export async function checkNode(root) {
  const locked = findNode(root);
  const here = `${process.platform} ${process.arch}`;
  if (locked === undefined) {
    if (Number(process.versions.node.split('.')[0]) >= needed) return;
    throw new SetupError(
      `npm has no Node for ${here}: install Node.js ${needed} or newer (this is ${process.versions.node}), then run this again`,
    );
  }
  const { code, output } = await run(join(root, locked.program), ['--version']);
  if (code === 0) return;
  throw new SetupError(
    `${locked.program} does not run here (${output.trim() || 'its loader is missing'}): it is for ${here}, and on Linux for glibc, which Alpine lacks`,
  );
}

/** The packages in a lock file, or in npm's record of what it installed. */
export function readPackages(path) {
  return JSON.parse(readFileSync(path, 'utf8')).packages;
}

/** The package with a program `node` for this platform. */
function findNode(folder) {
  const lock = join(folder, 'package-lock.json');
  if (!existsSync(lock)) return undefined;
  const found = Object.entries(readPackages(lock)).find(
    ([, { bin, os, cpu }]) =>
      bin?.node !== undefined &&
      [os].flat().includes(process.platform) &&
      [cpu].flat().includes(process.arch),
  );
  return found === undefined ? undefined : { program: join(found[0], found[1].bin.node) };
}

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { readPackages, whyNoNode } from './node.mjs';
import { environmentOutside, looksLikeNetworkTrouble, run, SetupError } from './run.mjs';

/** Whether the folder's node_modules matches its package-lock.json. */
export function packagesAreCurrent(folder) {
  return whyNotCurrent(folder) === undefined;
}

/** Installs exactly the locked packages; npm checks their hashes. */
export async function installPackages(folder, root) {
  const where = relative(root, folder) || 'the project';
  const reason = whyNotCurrent(folder);
  if (!existsSync(lockPath(folder))) {
    throw new SetupError(`${where} has no package-lock.json: run npm install there`);
  }
  console.log(`setup: installing the packages of ${where} with npm (${reason})`);
  // Override npm's settings: the clone's Node is an optional dependency, and the compiler a development one.
  const wanted = ['--include=dev', '--include=optional'];
  const { code, output } = await run(
    'npm',
    ['ci', ...wanted, '--no-audit', '--no-fund', '--loglevel=error'],
    { cwd: folder, env: environmentOutside(root), label: `npm ci in ${where}` },
  );
  if (code === undefined) throw new SetupError('npm is not in PATH: install it (it comes with Node.js)');
  if (code !== 0) throw new SetupError(explainFailure(where, code, output));
  const remaining = whyNotCurrent(folder);
  if (remaining !== undefined) throw new SetupError(`${where}: after npm ci, still ${remaining}`);
}

function explainFailure(where, code, output) {
  if (looksLikeNetworkTrouble(output)) {
    return "npm cannot reach the package registry: check the network and npm's proxy and registry settings, then run this again";
  }
  return `npm ci failed in ${where} (exit code ${code}); output of npm:\n${output.trim()}`;
}

function whyNotCurrent(folder) {
  if (!existsSync(join(folder, 'node_modules'))) return 'node_modules is missing';
  const node = whyNoNode(folder);
  if (node !== undefined) return node;
  if (existsSync(stampPath(folder)) && readFileSync(stampPath(folder), 'utf8') === lockHash(folder))
    return undefined;
  if (!matchesLock(folder)) return 'node_modules differs from package-lock.json';
  writeFileSync(stampPath(folder), lockHash(folder));
  return undefined;
}

/** Whether npm's record of node_modules has all locked packages, so that a plain `npm install` is not repeated. */
function matchesLock(folder) {
  const recordPath = join(folder, 'node_modules', '.package-lock.json');
  if (!existsSync(recordPath) || !existsSync(lockPath(folder))) return false;
  const installed = readPackages(recordPath);
  return Object.entries(readPackages(lockPath(folder))).every(([path, locked]) => {
    if (path === '') return true;
    const found = installed[path];
    if (found === undefined) return locked.optional === true;
    return found.version === locked.version && found.integrity === locked.integrity;
  });
}

function lockHash(folder) {
  return existsSync(lockPath(folder))
    ? createHash('sha256')
        .update(readFileSync(lockPath(folder)))
        .digest('hex')
    : '';
}

function lockPath(folder) {
  return join(folder, 'package-lock.json');
}

function stampPath(folder) {
  return join(folder, 'node_modules', '.setup-stamp');
}

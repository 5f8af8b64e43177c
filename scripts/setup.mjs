// Makes a clone ready to run: npm runs this before `start`, `test` and `bench`. Plain JavaScript for Node 20,
// because nothing is installed yet when it runs; what follows it runs on the Node that it installs.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildDist, distIsCurrent } from './setup/dist.mjs';
import { dockerIsCurrent, installDocker } from './setup/docker.mjs';
import { withLock } from './setup/lock.mjs';
import { installPackages, packagesAreCurrent } from './setup/packages.mjs';
import { installPostgres, postgresIsCurrent } from './setup/postgres.mjs';
import { SetupError } from './setup/run.mjs';
import { installSchemathesis, schemathesisIsCurrent } from './setup/schemathesis.mjs';
import { installUv, uvIsCurrent } from './setup/uv.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const cache = join(root, '.cache');
const flags = process.argv.slice(2);

try {
  const unknown = flags.filter((flag) => !['--test', '--bench', '--build'].includes(flag));
  if (unknown.length > 0)
    throw new SetupError(`unknown flag ${unknown[0]}; there are --test, --bench and --build`);
  await setUp();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`setup: ${error.message}`);
  process.exitCode = 1;
}

async function setUp() {
  if (missingSteps().length === 0) return;
  await withLock(join(cache, 'setup.lock'), async () => {
    // Asked again, because whoever held the lock before may have done it all.
    for (const step of missingSteps()) await step.run();
  });
}

function missingSteps() {
  const folders = [root];
  if (flags.includes('--test')) folders.push(join(root, 'test', 'peers'));
  if (flags.includes('--bench')) folders.push(join(root, 'bench', 'peers'));
  const steps = folders
    .filter((folder) => existsSync(join(folder, 'package.json')))
    .map((folder) => ({ done: packagesAreCurrent(folder), run: () => installPackages(folder, root) }));
  if (flags.includes('--test')) {
    steps.push({ done: uvIsCurrent(cache), run: () => installUv(cache) });
    steps.push({ done: postgresIsCurrent(cache), run: () => installPostgres(cache) });
    steps.push({ done: dockerIsCurrent(cache), run: () => installDocker(cache) });
    steps.push({ done: schemathesisIsCurrent(cache), run: () => installSchemathesis(cache) });
  }
  if (flags.includes('--build')) steps.push({ done: distIsCurrent(root), run: () => buildDist(root) });
  return steps.filter((step) => !step.done);
}

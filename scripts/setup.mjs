// Sets up a clone: npm runs this before `start`, `test`, `bench` and others. Plain JavaScript for Node 20, because nothing
// is installed yet; later scripts run on the Node that it installs.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildDist, distIsCurrent } from './setup/dist.mjs';
import { dockerStep } from './setup/docker.mjs';
import { withLock } from './setup/lock.mjs';
import { checkNode } from './setup/node.mjs';
import { installPackages, packagesAreCurrent } from './setup/packages.mjs';
import { postgresStep } from './setup/postgres.mjs';
import { proxyStep } from './setup/proxies.mjs';
import { schemathesisStep, uvStep } from './setup/python.mjs';
import { goStep, pythonStep } from './setup/real.mjs';
import { SetupError } from './setup/run.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const cache = join(root, '.cache');
const flags = process.argv.slice(2);

try {
  const unknown = flags.filter((flag) => !['--test', '--real', '--bench', '--build'].includes(flag));
  if (unknown.length > 0)
    throw new SetupError(`unknown flag ${unknown[0]}: use --test, --real, --bench or --build`);
  await setUp();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`setup: ${error.message}`);
  process.exitCode = 1;
}

async function setUp() {
  if (missingLines().length > 0) await install();
  await checkNode(root);
}

async function install() {
  await withLock(join(cache, 'setup.lock'), async () => {
    // Check again: the previous owner of the lock may have done it all. If one line fails, the others still finish.
    const ends = await Promise.allSettled(missingLines().map(runLine));
    const reasons = ends.filter(({ status }) => status === 'rejected').map(({ reason }) => reason);
    const fault = reasons.find((reason) => !(reason instanceof SetupError));
    if (fault !== undefined) throw fault;
    if (reasons.length > 0) throw new SetupError(reasons.map(({ message }) => message).join('\nsetup: '));
  });
}

/** Lines of steps: each step needs those before it, and lines are independent of each other. */
function missingLines() {
  const testing = flags.includes('--test');
  const real = flags.includes('--real');
  const lines = [[packages(root)]];
  if (flags.includes('--build'))
    lines[0].push({ done: () => distIsCurrent(root), run: () => buildDist(root) });
  if (testing) {
    lines.push([packages(join(root, 'test', 'peers'))]);
    lines.push([
      uvStep(cache),
      schemathesisStep(cache),
      ...(real ? ['sdk-1', 'sdk-2'].map((name) => pythonStep(cache, root, name)) : []),
    ]);
    lines.push([postgresStep(cache), dockerStep(cache)]);
  }
  if (real) {
    lines.push([packages(join(root, 'test', 'real', 'servers'))]);
    lines.push([packages(join(root, 'test', 'real', 'clients'))]);
    lines.push([goStep(cache, root)]);
    lines.push([proxyStep(cache, 'nginx'), proxyStep(cache, 'caddy')]);
  }
  if (flags.includes('--bench')) lines.push([packages(join(root, 'bench', 'peers'))]);
  return lines.filter((line) => line.some((step) => !step.done()));
}

async function runLine(line) {
  for (const step of line) if (!step.done()) await step.run();
}

function packages(folder) {
  return {
    done: () => packagesAreCurrent(folder),
    run: () => installPackages(folder, root),
  };
}

import { run } from './run.mjs';

/** The last installation: apt-get cannot run twice at the same time. */
let last = Promise.resolve();
let updating;

/**
 * Installs Debian packages. Resolves with the reason if that fails. It works only as root on a Debian-like system, such
 * as a container in CI.
 */
export function installDebian(packages, what) {
  const mine = last.then(() => install(packages, what));
  last = mine.catch(() => undefined);
  return mine;
}

async function install(packages, what) {
  if (process.getuid?.() !== 0) return 'only root can install it';
  console.log(`setup: ${what} is missing; installing it with apt-get`);
  updating ??= run('apt-get', ['update', '-qq']);
  const update = await updating;
  if (update.code === undefined) return 'there is no apt-get to install it with';
  // Keep existing settings, without a prompt.
  const options = ['-y', '-qq', '--no-install-recommends', '-o', 'Dpkg::Options::=--force-confold'];
  const { code, output } = await run('apt-get', ['install', ...options, ...packages], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    label: `apt-get install ${packages.join(' ')}`,
  });
  return code === 0 ? undefined : `apt-get install failed: ${lastLine(output)}`;
}

export function lastLine(output) {
  return output.trim().split('\n').at(-1) ?? '';
}

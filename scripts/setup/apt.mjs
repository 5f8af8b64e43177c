import { run } from './run.mjs';

/**
 * Installs Debian's packages. Gives why they could not be had; undefined: they are there. Only root of a Debian-like
 * system can do that, as in a container of a CI.
 */
export async function installDebian(packages, what) {
  if (process.getuid?.() !== 0) return 'only root can install it';
  console.log(`setup: ${what} is missing; installing it with apt-get`);
  const update = await run('apt-get', ['update', '-qq']);
  if (update.code === undefined) return 'there is no apt-get to install it with';
  // Settings that are there already stay, without a question.
  const options = ['-y', '-qq', '--no-install-recommends', '-o', 'Dpkg::Options::=--force-confold'];
  const install = await run('apt-get', ['install', ...options, ...packages], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    label: `apt-get install ${packages.join(' ')}`,
  });
  return install.code === 0 ? undefined : `apt-get install failed: ${lastLine(install.output)}`;
}

export function lastLine(output) {
  return output.trim().split('\n').at(-1) ?? '';
}

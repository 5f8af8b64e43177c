import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { run } from './run.mjs';

const noApt = 'there is no apt-get to install it with';

/** The last installation: apt-get cannot run twice at the same time. */
let last = Promise.resolve();
let updating;

/**
 * Installs Debian packages. Resolves with the reason if that fails. It works only as root on a Debian-like system, such
 * as a container in CI.
 */
export function installDebian(packages, what) {
  return inTurn(() => install(packages, what));
}

/**
 * Unpacks a Debian package into a folder, without installing it: no service starts, and no port is taken. Resolves with the
 * reason if that fails.
 */
export function unpackDebian(name, folder) {
  return inTurn(() => unpack(name, folder));
}

function inTurn(work) {
  const mine = last.then(work);
  last = mine.catch(() => undefined);
  return mine;
}

/** Only root can. Others use the lists of packages as they are. */
async function update() {
  if (process.getuid?.() !== 0) return;
  updating ??= run('apt-get', ['update', '-qq']);
  await updating;
}

async function install(packages, what) {
  if (process.getuid?.() !== 0) return 'only root can install it';
  console.log(`setup: ${what} is missing; installing it with apt-get`);
  await update();
  // Keep existing settings, without a prompt.
  const options = ['-y', '-qq', '--no-install-recommends', '-o', 'Dpkg::Options::=--force-confold'];
  const { code, output } = await run('apt-get', ['install', ...options, ...packages], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    label: `apt-get install ${packages.join(' ')}`,
  });
  if (code === undefined) return noApt;
  return code === 0 ? undefined : `apt-get install failed: ${lastLine(output)}`;
}

async function unpack(name, folder) {
  await update();
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // The folder need not be readable for apt's own user.
  const words = ['download', '-qq', '-o', 'APT::Sandbox::User=root', name];
  const download = await run('apt-get', words, { cwd: folder, label: `apt-get download ${name}` });
  if (download.code === undefined) return noApt;
  if (download.code !== 0) return `apt-get download failed: ${lastLine(download.output)}`;
  const [file] = readdirSync(folder);
  const { code, output } = await run('dpkg-deb', ['--extract', file, '.'], { cwd: folder });
  return code === 0 ? undefined : `dpkg-deb failed: ${lastLine(output)}`;
}

export function lastLine(output) {
  return output.trim().split('\n').at(-1) ?? '';
}

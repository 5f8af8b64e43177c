import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { installDebian, lastLine } from './apt.mjs';
import { looksLikeNetworkTrouble, run } from './run.mjs';

/** Makes a virtual environment with these packages of PyPI in it. Gives why it could not be had; undefined: it is there. */
export async function makeVenv(venv, packages) {
  rmSync(venv, { recursive: true, force: true });
  let made = await run('python3', ['-m', 'venv', venv]);
  if (made.code !== 0 && (await installPython())) made = await run('python3', ['-m', 'venv', venv]);
  if (made.code === undefined) return 'python3 is not installed';
  if (made.code !== 0) return `python3 -m venv failed: ${lastLine(made.output)}`;
  const pip = await run(join(venv, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', ...packages], {
    label: `pip install ${packages.join(' ')}`,
  });
  return pip.code === 0 ? undefined : explain(`pip could not install ${packages.join(' ')}`, pip.output);
}

export function explain(what, output) {
  return `${what}: ${looksLikeNetworkTrouble(output) ? 'PyPI cannot be reached' : lastLine(output)}`;
}

/** Debian's python3 comes without venv. */
async function installPython() {
  const missing = await installDebian(['python3', 'python3-venv'], 'python3 or its venv module');
  if (missing?.startsWith('apt-get')) console.warn(`setup: ${missing}`);
  return missing === undefined;
}

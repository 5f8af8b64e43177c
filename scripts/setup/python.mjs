import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { installDebian, lastLine } from './apt.mjs';
import { partIsCurrent, recordPart } from './record.mjs';
import { looksLikeNetworkTrouble, run } from './run.mjs';

// A change of a recipe makes every clone install the part again.
const requirement = 'uv>=0.9,<1';
const server = 'mcp-server-fetch';
const uvx = { name: 'uvx', recipe: `${requirement} ${server}`, what: server };
// Both generate input: with other versions, the same seed sends something else.
const generators = ['schemathesis==4.32.5', 'hypothesis==6.170.15'];
const schemathesis = { name: 'schemathesis', recipe: generators.join(' ') };

/** Installs uv, and a Python MCP server that tests use, inside the clone. */
export function uvStep(cache) {
  return {
    done: () => partIsCurrent(cache, uvx),
    run: async () => {
      const venv = join(cache, 'uv');
      console.log(`setup: installing uv and ${server} from PyPI into .cache/uv (tests run them)`);
      const environment = environmentOf(cache);
      const missing = (await makeVenv(venv, [requirement])) ?? (await download(venv, environment));
      // Offline, so that tests run what was downloaded here, and do not depend on the network.
      recordPart(cache, uvx, missing, join(venv, 'bin', 'uvx'), { ...environment, UV_OFFLINE: '1' });
    },
  };
}

/** Installs schemathesis, which tests an API by its OpenAPI document. */
export function schemathesisStep(cache) {
  return uvVenvStep(cache, schemathesis, generators, 'schemathesis');
}

/** Installs packages of PyPI with uv into .cache/<part>; the part's command is this program of it. */
export function uvVenvStep(cache, part, packages, program) {
  return {
    done: () => partIsCurrent(cache, part),
    run: async () => {
      const venv = join(cache, part.name);
      console.log(`setup: installing ${part.name} from PyPI into .cache/${part.name} (tests run it)`);
      recordPart(cache, part, await makeUvVenv(cache, venv, packages), join(venv, 'bin', program));
    },
  };
}

/** Creates a virtual environment with Python's own venv. Resolves with the reason if that fails. */
async function makeVenv(venv, packages) {
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

/** Creates a virtual environment with uv. Resolves with the reason if that fails. */
async function makeUvVenv(cache, venv, packages) {
  if (!partIsCurrent(cache, uvx)) return 'uv could not be installed';
  const uv = join(cache, 'uv', 'bin', 'uv');
  const env = { ...process.env, ...environmentOf(cache) };
  const made = await run(uv, ['venv', '--quiet', '--clear', venv], { env });
  if (made.code !== 0) return `uv venv failed: ${lastLine(made.output)}`;
  const python = join(venv, 'bin', 'python');
  const { code, output } = await run(uv, ['pip', 'install', '--quiet', '--python', python, ...packages], {
    env,
    label: `uv pip install ${packages.join(' ')}`,
  });
  return code === 0 ? undefined : explain(`uv could not install ${packages.join(' ')}`, output);
}

/** uv uses the Python of its own environment, and keeps its downloads inside the clone. */
function environmentOf(cache) {
  return {
    UV_CACHE_DIR: join(cache, 'uv-packages'),
    UV_PYTHON: join(cache, 'uv', 'bin', 'python'),
    UV_PYTHON_DOWNLOADS: 'never',
  };
}

async function download(venv, environment) {
  const { code, output } = await run(join(venv, 'bin', 'uvx'), [server, '--help'], {
    env: { ...process.env, ...environment },
    label: `uvx ${server}`,
  });
  return code === 0 ? undefined : explain(`uvx could not install ${server}`, output);
}

function explain(what, output) {
  return `${what}: ${looksLikeNetworkTrouble(output) ? 'PyPI cannot be reached' : lastLine(output)}`;
}

/** Debian's python3 comes without venv. */
async function installPython() {
  const missing = await installDebian(['python3', 'python3-venv'], 'python3 or its venv module');
  if (missing?.startsWith('apt-get')) console.warn(`setup: ${missing}`);
  return missing === undefined;
}

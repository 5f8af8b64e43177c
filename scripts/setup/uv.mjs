import { join } from 'node:path';
import { lastLine } from './apt.mjs';
import { explain, makeVenv } from './python.mjs';
import { partIsCurrent, recordPart } from './record.mjs';
import { run } from './run.mjs';

// What is installed; a change here makes every clone install anew.
const requirement = 'uv>=0.9,<1';
const warmed = ['mcp-server-fetch'];
const recipe = [requirement, ...warmed].join(' ');

/**
 * uv and the Python MCP servers that tests talk to, installed inside the clone. Tests that need them are skipped
 * where they cannot be had, so a failure here is written down for test/helpers/parts.ts and not thrown.
 */
export async function installUv(cache) {
  const venv = join(cache, 'uv');
  console.log('setup: installing uv and mcp-server-fetch from PyPI into .cache/uv (tests run them)');
  const environment = environmentOf(cache);
  const missing = (await makeVenv(venv, [requirement])) ?? (await warm(venv, environment));
  const uvx = join(venv, 'bin', 'uvx');
  const part =
    missing === undefined
      ? // Offline: what was fetched here is what tests run, and a slow network cannot make them slow.
        { recipe, command: uvx, env: { ...environment, UV_OFFLINE: '1' } }
      : { recipe, missing };
  recordPart(cache, 'uvx', part);
  if (missing !== undefined)
    console.warn(`setup: the tests with mcp-server-fetch will be skipped: ${missing}`);
}

export function uvIsCurrent(cache) {
  return partIsCurrent(cache, 'uvx', recipe);
}

/**
 * Makes a virtual environment with uv. Gives why it could not be had;
 * undefined: it is there.
 */
export async function makeUvVenv(cache, venv, packages) {
  if (!uvIsCurrent(cache)) return 'uv could not be installed';
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

/** uv takes the Python that made its own environment, and keeps what it fetches inside the clone. */
function environmentOf(cache) {
  return {
    UV_CACHE_DIR: join(cache, 'uv-packages'),
    UV_PYTHON: join(cache, 'uv', 'bin', 'python'),
    UV_PYTHON_DOWNLOADS: 'never',
  };
}

async function warm(venv, environment) {
  for (const name of warmed) {
    const result = await run(join(venv, 'bin', 'uvx'), [name, '--help'], {
      env: { ...process.env, ...environment },
      label: `uvx ${name}`,
    });
    if (result.code !== 0) return explain(`uvx could not install ${name}`, result.output);
  }
  return undefined;
}

import { join } from 'node:path';
import { partIsCurrent, recordPart } from './record.mjs';
import { makeUvVenv } from './uv.mjs';

// Both make up what is sent: with others, the same seed sends something else.
const packages = ['schemathesis==4.32.5', 'hypothesis==6.170.15'];
const name = 'schemathesis';
const recipe = packages.join(' ');

/**
 * Tries an API by its OpenAPI document. Where it cannot be had, that is written down for test/helpers/parts.ts and not
 * thrown.
 */
export async function installSchemathesis(cache) {
  const venv = join(cache, name);
  console.log('setup: installing schemathesis from PyPI into .cache/schemathesis (a test runs it)');
  const missing = await makeUvVenv(cache, venv, packages);
  const command = join(venv, 'bin', name);
  recordPart(cache, name, missing === undefined ? { recipe, command, env: {} } : { recipe, missing });
  if (missing !== undefined) console.warn(`setup: the test with schemathesis will be skipped: ${missing}`);
}

export function schemathesisIsCurrent(cache) {
  return partIsCurrent(cache, name, recipe);
}

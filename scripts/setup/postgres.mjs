import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { installDebian } from './apt.mjs';
import { partIsCurrent, recordPart } from './record.mjs';

const folder = '/usr/lib/postgresql';
const name = 'postgres';
const recipe = "Debian's postgresql";

/**
 * Debian's PostgreSQL, as many run it, for the tests with a server that is not our own. Where it cannot be had, that is
 * written down for test/helpers/parts.ts and not thrown.
 */
export async function installPostgres(cache) {
  const missing = findPostgres() === undefined ? await installServer() : undefined;
  const command = findPostgres();
  const reason = missing ?? `there is no PostgreSQL in ${folder}`;
  recordPart(cache, name, command === undefined ? { recipe, missing: reason } : { recipe, command, env: {} });
  if (command === undefined)
    console.warn(`setup: the tests with Debian's PostgreSQL will be skipped: ${reason}`);
}

export function postgresIsCurrent(cache) {
  return partIsCurrent(cache, name, recipe);
}

/** The newest one. */
function findPostgres() {
  if (!existsSync(folder)) return undefined;
  return readdirSync(folder)
    .sort((one, other) => Number(other) - Number(one))
    .map((version) => join(folder, version, 'bin', 'postgres'))
    .find((path) => existsSync(path));
}

/** Only the programs: the package would make and start a database of its own otherwise. */
async function installServer() {
  const settings = '/etc/postgresql-common/createcluster.conf';
  if (process.getuid?.() === 0 && !existsSync(settings)) {
    mkdirSync(dirname(settings), { recursive: true });
    writeFileSync(settings, 'create_main_cluster = false\n');
  }
  return installDebian(['postgresql'], 'PostgreSQL');
}

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { installDebian } from './apt.mjs';
import { partIsCurrent, recordPart } from './record.mjs';

const folder = '/usr/lib/postgresql';
const part = { name: 'postgres', recipe: "Debian's postgresql", what: "Debian's PostgreSQL" };

/** Installs Debian's PostgreSQL, for the tests with an external database. */
export function postgresStep(cache) {
  return {
    done: () => partIsCurrent(cache, part),
    run: async () => {
      const reason = findPostgres() === undefined ? await installServer() : undefined;
      const command = findPostgres();
      const missing = command === undefined ? (reason ?? `there is no PostgreSQL in ${folder}`) : undefined;
      recordPart(cache, part, missing, command);
    },
  };
}

/** Finds the newest version. */
function findPostgres() {
  if (!existsSync(folder)) return undefined;
  return readdirSync(folder)
    .sort((one, other) => Number(other) - Number(one))
    .map((version) => join(folder, version, 'bin', 'postgres'))
    .find((path) => existsSync(path));
}

/** Installs only the programs: by default, the package also creates and starts a database. */
async function installServer() {
  const settings = '/etc/postgresql-common/createcluster.conf';
  if (process.getuid?.() === 0 && !existsSync(settings)) {
    mkdirSync(dirname(settings), { recursive: true });
    writeFileSync(settings, 'create_main_cluster = false\n');
  }
  return installDebian(['postgresql'], 'PostgreSQL');
}

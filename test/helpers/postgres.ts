import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findPostmaster } from '../../src/store/embedded/pid-file.ts';

export function postgresIn(home: string): number | undefined {
  return findPostmaster(join(home, 'postgres'));
}

/** Stops the PostgreSQL of a Switchboard that was killed. */
export async function endPostgresIn(home: string): Promise<void> {
  for (let pid = postgresIn(home); pid !== undefined; pid = postgresIn(home)) {
    process.kill(pid, 'SIGQUIT');
    await delay(20);
  }
}

/** Stops what still runs in the home first. */
export async function removeHome(home: string): Promise<void> {
  await endPostgresIn(home);
  await rm(home, { recursive: true, force: true });
}

/** Switchboard's login to the PostgreSQL in its home. */
export function ownLogin(home: string): { user: string; password: string } {
  return { user: 'switchboard_app', password: readFileSync(join(home, 'postgres.password'), 'utf8').trim() };
}

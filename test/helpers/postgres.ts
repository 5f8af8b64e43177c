import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findPostmaster } from '../../src/store/embedded/pid-file.ts';

export function postgresIn(home: string): number | undefined {
  return findPostmaster(join(home, 'postgres'));
}

/** Ends the PostgreSQL that a Switchboard which was killed has left behind. */
export async function endPostgresIn(home: string): Promise<void> {
  for (let pid = postgresIn(home); pid !== undefined; pid = postgresIn(home)) {
    process.kill(pid, 'SIGQUIT');
    await delay(20);
  }
}

/** Removes a home, and ends what still runs in it before. */
export async function removeHome(home: string): Promise<void> {
  await endPostgresIn(home);
  await rm(home, { recursive: true, force: true });
}

/** As whom Switchboard uses the PostgreSQL in its home. */
export function ownLogin(home: string): { user: string; password: string } {
  return { user: 'switchboard_app', password: readFileSync(join(home, 'postgres.password'), 'utf8').trim() };
}

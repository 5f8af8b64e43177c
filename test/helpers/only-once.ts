import { existsSync, readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Runs the work once among all processes with this folder and name. All callers await it, and get its failure. */
export async function onlyOnce(folder: string, name: string, work: () => Promise<void>): Promise<void> {
  const lock = join(folder, `${name}.lock`);
  const outcome = join(folder, `${name}.outcome`);
  if (await take(lock)) await recordOutcome(outcome, work);
  while (!existsSync(outcome)) {
    if (!isAlive(ownerOf(lock)) && !existsSync(outcome)) {
      throw new Error(`The process that had to do ${name} ended before it was done`);
    }
    await delay(20);
  }
  const failure = readFileSync(outcome, 'utf8');
  if (failure !== '') throw new Error(failure);
}

async function take(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  }
}

/** Renamed when complete, so that readers see no partial file. */
async function recordOutcome(outcome: string, work: () => Promise<void>): Promise<void> {
  const failure = await work().then(
    () => '',
    (error: Error) => error.message || 'it failed and did not say why',
  );
  await writeFile(`${outcome}-new`, failure);
  await rename(`${outcome}-new`, outcome);
}

/** Undefined until the owner of the lock has written its pid. */
function ownerOf(lock: string): number | undefined {
  return Number(readFileSync(lock, 'utf8')) || undefined;
}

function isAlive(pid: number | undefined): boolean {
  return pid === undefined || existsSync(`/proc/${pid}`);
}

import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { SwitchboardError } from '../../errors.ts';
import type { Account } from './account.ts';
import type { Binaries } from './binaries.ts';
import { cleanEnvironment, isRunning } from './processes.ts';

/** Owns the cluster, and cannot log in after it is closed. */
export const SUPERUSER = 'switchboard';

/** Creates the data folder if it does not exist, in a draft folder, so that a crash leaves no partial cluster. */
export async function prepareCluster(
  data: string,
  binaries: Binaries,
  account: Account,
  progress: (message: string) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  removeDrafts(data);
  if (!existsSync(join(data, 'PG_VERSION'))) {
    progress(`creating the database in ${data}`);
    await create(data, binaries, account, signal);
  }
  await requireVersion(data, binaries);
  if (account.owner !== undefined) giveTo(data, account.owner);
}

async function create(
  data: string,
  { initdb }: Binaries,
  account: Account,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (existsSync(data) && readdirSync(data).length > 0) throw foreignFiles(data);
  const draft = `${data}.new-${process.pid}-${randomUUID()}`;
  const [command, ...args] = [
    ...account.prefix,
    initdb,
    ...[`--pgdata=${draft}`, `--username=${SUPERUSER}`, '--auth-local=trust', '--auth-host=reject'],
    ...['--encoding=UTF8', '--locale=C', '--data-checksums', '--no-instructions'],
  ];
  try {
    mkdirSync(draft, { mode: 0o700 });
    if (account.owner !== undefined) giveTo(draft, account.owner);
    await runInitdb(command!, args, account, signal);
    renameSync(draft, data);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    signal?.throwIfAborted();
    // Another process was faster.
    if (existsSync(join(data, 'PG_VERSION'))) return;
    throw new SwitchboardError(
      'invalid_config',
      `No database can be made in ${data}: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

function foreignFiles(data: string): SwitchboardError {
  return new SwitchboardError(
    'invalid_config',
    `No database can be made in ${data}: there are other files in that folder. Move them away, or set SWITCHBOARD_HOME to another folder.`,
  );
}

/** Runs in its own process group, so that its children can be killed with it. */
async function runInitdb(
  command: string,
  args: string[],
  { owner }: Account,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted();
  const child = spawn(command, args, {
    ...owner,
    cwd: '/',
    env: cleanEnvironment(),
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  const kill = () => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL');
  signal?.addEventListener('abort', kill);
  const ended = once(child, 'close');
  try {
    const [said, [code]] = await Promise.all([text(child.stderr), ended]);
    signal?.throwIfAborted();
    if (code !== 0) throw new Error(said.trim().replaceAll(/^initdb: removing.*\n?/gm, ''));
  } finally {
    signal?.removeEventListener('abort', kill);
  }
}

/** Removes drafts of processes that were killed. */
function removeDrafts(data: string): void {
  for (const name of readdirSync(dirname(data))) {
    const [, pid] = /^postgres\.new-(\d+)-/.exec(name) ?? [];
    if (pid === undefined || isRunning(Number(pid))) continue;
    rmSync(join(dirname(data), name), { recursive: true, force: true });
  }
}

async function requireVersion(data: string, { postgres }: Binaries): Promise<void> {
  const found = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();
  const { stdout } = await promisify(execFile)(postgres, ['--version'], { env: cleanEnvironment() });
  const ours = /\d+/.exec(stdout)?.[0];
  if (found === ours) return;
  throw new SwitchboardError(
    'invalid_config',
    `The database in ${data} is of PostgreSQL ${found}, and this Switchboard brings ${ours}. Use the Switchboard that made it, or move it with pg_dump and pg_restore; to begin with an empty one, rename the folder ${basename(data)}.`,
  );
}

function giveTo(path: string, owner: { uid: number; gid: number }): void {
  const { uid, gid } = lstatSync(path);
  // All files in the folder have the same owner.
  if (uid === owner.uid && gid === owner.gid) return;
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    chownSync(join(entry.parentPath, entry.name), owner.uid, owner.gid);
  }
  chownSync(path, owner.uid, owner.gid);
}

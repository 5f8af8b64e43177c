import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
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
import { promisify } from 'node:util';
import { SwitchboardError } from '../../errors.ts';
import type { Account } from './account.ts';
import type { Binaries } from './binaries.ts';
import { cleanEnvironment, isRunning } from './processes.ts';

export const USER = 'switchboard';
const run = promisify(execFile);

/** Makes the data folder if there is none. Whoever has half of one after a crash begins anew. */
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
  const draft = `${data}.new-${process.pid}-${randomUUID()}`;
  const [command, ...args] = [
    ...account.prefix,
    initdb,
    ...[`--pgdata=${draft}`, `--username=${USER}`, '--auth-local=trust', '--auth-host=reject'],
    ...['--encoding=UTF8', '--locale=C', '--data-checksums', '--no-instructions'],
  ];
  try {
    mkdirSync(draft, { mode: 0o700 });
    if (account.owner !== undefined) giveTo(draft, account.owner);
    await run(command!, args, {
      ...account.owner,
      ...(signal && { signal }),
      cwd: '/',
      env: cleanEnvironment(),
    });
    renameSync(draft, data);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    signal?.throwIfAborted();
    // Another process was faster.
    if (existsSync(join(data, 'PG_VERSION'))) return;
    throw new SwitchboardError('invalid_config', `No database can be made in ${data}: ${whyNot(error)}`, {
      cause: error,
    });
  }
}

function whyNot(error: unknown): string {
  const { code, stderr, message } = error as NodeJS.ErrnoException & { stderr?: string };
  if (code === 'ENOTEMPTY' || code === 'EEXIST') {
    return 'there are other files in that folder. Move them away, or set SWITCHBOARD_HOME to another folder.';
  }
  const said = stderr
    ?.trim()
    .split('\n')
    .filter((line) => !line.startsWith('initdb: removing'))
    .join(' ');
  return said || message;
}

/** What those left behind who were ended in the middle of it. */
function removeDrafts(data: string): void {
  for (const name of readdirSync(dirname(data))) {
    const [, pid] = /^postgres\.new-(\d+)-/.exec(name) ?? [];
    if (pid === undefined || isRunning(Number(pid))) continue;
    rmSync(join(dirname(data), name), { recursive: true, force: true });
  }
}

async function requireVersion(data: string, { postgres }: Binaries): Promise<void> {
  const found = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();
  const { stdout } = await run(postgres, ['--version'], { env: cleanEnvironment() });
  const ours = /\d+/.exec(stdout)?.[0];
  if (found === ours) return;
  throw new SwitchboardError(
    'invalid_config',
    `The database in ${data} is of PostgreSQL ${found}, and this Switchboard brings ${ours}. Use the Switchboard that made it, or move it with pg_dump and pg_restore; to begin with an empty one, rename the folder ${basename(data)}.`,
  );
}

function giveTo(path: string, owner: { uid: number; gid: number }): void {
  const { uid, gid } = lstatSync(path);
  // All files of a folder have one owner.
  if (uid === owner.uid && gid === owner.gid) return;
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    chownSync(join(entry.parentPath, entry.name), owner.uid, owner.gid);
  }
  chownSync(path, owner.uid, owner.gid);
}

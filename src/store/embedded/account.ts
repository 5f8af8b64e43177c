import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { SwitchboardError } from '../../errors.ts';
import type { Binaries } from './binaries.ts';

export interface Account {
  /** The words before the command. */
  prefix: string[];
  /** The owner of the process and the files; undefined for the current user. */
  owner: { uid: number; gid: number } | undefined;
}

interface Facts {
  isRoot: boolean;
  unshareWorks(): boolean;
}

const ourselves: Account = { prefix: [], owner: undefined };
/** A user namespace: the files stay root's, but the process has no privileges. */
const unshared: Account = {
  prefix: ['unshare', '--user', '--map-user=65534', '--map-group=65534'],
  owner: undefined,
};

const thisMachine: Facts = {
  isRoot: process.getuid?.() === 0,
  unshareWorks: () => succeeds(unshared.prefix[0]!, [...unshared.prefix.slice(1), 'true']),
};

/** PostgreSQL refuses to run as root. */
export function findAccount(home: string, data: string, binaries: Binaries, facts = thisMachine): Account {
  if (!facts.isRoot) return ourselves;
  const owner = ownerOf(data);
  if (owner !== undefined && owner.uid !== 0) return { prefix: [], owner };
  if (facts.unshareWorks()) return unshared;
  const nobody = findNobody();
  if (nobody !== undefined && canReach(nobody, home, binaries)) return { prefix: [], owner: nobody };
  throw new SwitchboardError(
    'invalid_config',
    `PostgreSQL does not run as root, and the user nobody ${nobody === undefined ? 'does not exist' : `cannot reach ${home} or ${binaries.postgres}`}. Run Switchboard as another user, set SWITCHBOARD_HOME to a folder that everybody may enter (such as /var/lib/switchboard), set DATABASE_URL, or run with --no-database.`,
  );
}

function ownerOf(folder: string): Account['owner'] {
  const found = statSync(folder, { throwIfNoEntry: false });
  return found === undefined ? undefined : { uid: found.uid, gid: found.gid };
}

function findNobody(): Account['owner'] {
  const [uid, gid] = ['-u', '-g'].map((flag) => {
    const { status, stdout } = spawnSync('id', [flag, 'nobody'], { encoding: 'utf8' });
    return status === 0 ? Number(stdout) : undefined;
  });
  return uid === undefined || gid === undefined ? undefined : { uid, gid };
}

function canReach(who: { uid: number; gid: number }, home: string, { postgres }: Binaries): boolean {
  return succeeds('sh', ['-c', 'test -x "$0" && test -x "$1"', home, postgres], { ...who, cwd: '/' });
}

function succeeds(
  command: string,
  args: string[],
  options: { uid?: number; gid?: number; cwd?: string } = {},
) {
  return spawnSync(command, args, { ...options, stdio: 'ignore' }).status === 0;
}

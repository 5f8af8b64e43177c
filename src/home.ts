import { homedir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { SwitchboardError } from './errors.ts';

/** The folder for Switchboard's files. An empty variable counts as unset. */
export function home(): string {
  const { SWITCHBOARD_HOME: chosen = '' } = process.env;
  return resolve(chosen === '' ? join(folderOfUser(), '.switchboard') : chosen);
}

function folderOfUser(): string {
  const folder = attempt(homedir) || attempt(() => userInfo().homedir);
  if (folder) return folder;
  throw new SwitchboardError(
    'invalid_config',
    'This user has no home folder: set SWITCHBOARD_HOME to the folder where Switchboard keeps its files.',
  );
}

/** Both throw if the system does not know the user, as in some containers. */
function attempt(find: () => string): string | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}

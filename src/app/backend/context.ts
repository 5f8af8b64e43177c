import type { Chats } from '../../chats/chats.ts';
import { SwitchboardError } from '../../errors.ts';
import type { Hosting } from '../../projects/hosting/hosting.ts';
import type { Projects } from '../../projects/projects.ts';
import type { Refresher } from '../../projects/refresher.ts';
import type { StoredNames } from '../../projects/stored-names.ts';
import type { StoredOffers } from '../../projects/stored-offers.ts';
import type { Recorder } from '../../records/recorder.ts';
import type { Store } from '../../store/store.ts';
import type { Server } from '../../upstreams/server.ts';
import type { ReplicaSettings } from '../../upstreams/settings.ts';
import type { StoredSessions } from '../stored-sessions.ts';

/** What the API's answers are made from. */
export interface Parts {
  projects: Projects;
  /** Undefined where Switchboard runs without a database. */
  stored: Stored | undefined;
  /** Undefined there too. */
  hosting: Hosting | undefined;
  /** And there. */
  chats: Chats | undefined;
  /** For servers that are tried out. */
  servers: Omit<ReplicaSettings, 'project' | 'variable' | 'given' | 'redact'>;
  /** Those that are tried out just now. */
  trials: Set<Server>;
}

export interface Stored {
  store: Store;
  refresher: Refresher;
  recorder: Recorder;
  memory: StoredOffers;
  sessions: StoredSessions;
  names: StoredNames;
}

export function needStored({ stored }: Pick<Parts, 'stored'>): Stored {
  if (stored !== undefined) return stored;
  throw new SwitchboardError(
    'no_database',
    'Switchboard runs without a database, so nothing can be kept: start it without --no-database (and without DATABASE_URL=none).',
  );
}

/** Makes a change, and settles when this process lives by it. */
export async function change<Result>(
  parts: Pick<Parts, 'stored'>,
  project: { id: string } | undefined,
  write: (store: Store) => Promise<Result>,
): Promise<Result> {
  const { store, refresher } = needStored(parts);
  const result = await write(store);
  await refresher.refresh(project?.id);
  return result;
}

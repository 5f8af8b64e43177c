import { SwitchboardError } from '../../errors.ts';
import type { Store } from '../../store/types.ts';
import type { Server } from '../../upstreams/server.ts';
import type { ReplicaSettings } from '../../upstreams/settings.ts';
import type { Chats } from '../chats.ts';
import type { Hosting } from '../hosting.ts';
import type { KeptNames } from '../kept-names.ts';
import type { KeptSessions } from '../kept-sessions.ts';
import type { Memory } from '../memory.ts';
import type { Projects } from '../projects.ts';
import type { Recorder } from '../recorder.ts';
import type { Refresher } from '../refresher.ts';

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
  memory: Memory;
  sessions: KeptSessions;
  names: KeptNames;
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

import type { Chats } from '../chats/chats.ts';
import { SwitchboardError } from '../errors.ts';
import type { Hosting } from '../projects/hosting/hosting.ts';
import type { Projects } from '../projects/projects.ts';
import type { Refresher } from '../projects/refresher.ts';
import type { Recorder } from '../records/recorder.ts';
import type { Store } from '../store/store.ts';
import type { Server } from '../upstreams/server.ts';
import type { ReplicaSettings } from '../upstreams/settings.ts';
import type { ProjectEvents } from './project-events.ts';
import type { StatusView } from './views.ts';

export interface Services {
  projects: Projects;
  events: ProjectEvents;
  /** Undefined if Switchboard runs without a database. */
  database: DatabaseServices | undefined;
  serverSettings: Omit<ReplicaSettings, 'project' | 'variable' | 'given' | 'redact'>;
  /** Temporary servers of connection tests. */
  testedServers: Set<Server>;
  status(): StatusView;
}

interface DatabaseServices {
  store: Store;
  refresher: Refresher;
  recorder: Recorder;
  hosting: Hosting;
  chats: Chats;
}

export function needDatabase({ database }: Services): DatabaseServices {
  if (database !== undefined) return database;
  throw new SwitchboardError(
    'no_database',
    'This needs a database, and Switchboard runs without one: start it without --no-database (and without DATABASE_URL=none).',
  );
}

/** Writes to the database, and resolves when this process has applied the change. Without a project, refreshes all. */
export async function applyChange<Result>(
  services: Services,
  project: { id: string } | undefined,
  write: (store: Store) => Promise<Result>,
): Promise<Result> {
  const { store, refresher } = needDatabase(services);
  const result = await write(store);
  await refresher.refresh(project?.id);
  return result;
}

const MAX_ATTEMPTS = 5;

/** Retries if the row changed meanwhile, unless the client requires a version. */
export async function changeCurrent<Result>(
  services: Services,
  project: { id: string },
  ifVersion: number | undefined,
  attempt: () => Promise<Result>,
): Promise<Result> {
  for (let count = 1; ; count++) {
    try {
      return await attempt();
    } catch (error) {
      const isOutdated = error instanceof SwitchboardError && error.code === 'version_conflict';
      if (!isOutdated || ifVersion !== undefined || count === MAX_ATTEMPTS) throw error;
      await needDatabase(services).refresher.refresh(project.id);
    }
  }
}

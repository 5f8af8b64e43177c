import type { Chats } from '../chats/chats.ts';
import { SwitchboardError } from '../errors.ts';
import type { AccessControl } from '../identity/access-control.ts';
import type { Limiter } from '../identity/limiter.ts';
import type { Policy } from '../identity/policy.ts';
import type { PolicyRefresher } from '../identity/policy-refresher.ts';
import type { Sender } from '../identity/principal.ts';
import type { Hosting } from '../projects/hosting/hosting.ts';
import type { Projects } from '../projects/projects.ts';
import type { Refresher } from '../projects/refresher.ts';
import type { Recorder } from '../records/recorder.ts';
import type { Actor } from '../store/audit/append.ts';
import type { Store } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';
import type { Server } from '../upstreams/server.ts';
import type { ReplicaSettings } from '../upstreams/settings.ts';
import type { ProjectEvents } from './project-events.ts';
import type { StatusView } from './views.ts';

export interface Services {
  projects: Projects;
  events: ProjectEvents;
  identity: IdentityServices;
  /** Undefined if Switchboard runs without a database. */
  database: DatabaseServices | undefined;
  serverSettings: Omit<ReplicaSettings, 'project' | 'variable' | 'given' | 'redact'>;
  /** Temporary servers of connection tests. */
  testedServers: Set<Server>;
  status(): StatusView;
}

interface IdentityServices {
  control: AccessControl;
  policy: Policy;
  limiter: Limiter;
  /** Whether every request needs a credential. */
  isOn: boolean;
}

interface DatabaseServices {
  store: Store;
  refresher: Refresher;
  policyRefresher: PolicyRefresher;
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

/**
 * Writes to the database in the sender's name, and resolves when this process has applied the change. Without a project,
 * refreshes all.
 */
export async function applyChange<Result>(
  services: Services,
  sender: Sender,
  project: { id: string } | undefined,
  write: (tables: Tables) => Promise<Result>,
): Promise<Result> {
  const { store, refresher } = needDatabase(services);
  const result = await write(store.by(actorOf(sender)));
  await refresher.refresh(project?.id);
  return result;
}

/** The same for changes of who may do what. */
export async function applyAccess<Result>(
  services: Services,
  sender: Sender,
  write: (tables: Tables) => Promise<Result>,
): Promise<Result> {
  const { store, policyRefresher } = needDatabase(services);
  const result = await write(store.by(actorOf(sender)));
  await policyRefresher.refresh();
  return result;
}

function actorOf({ principal: { kind, id, name }, address }: Sender): Actor {
  return { kind, id, name, address };
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

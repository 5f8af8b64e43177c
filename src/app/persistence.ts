import querystring from 'node:querystring';
import type { StatusView } from '../api/views.ts';
import { moveCredentials, type Settings } from '../config.ts';
import type { Projects } from '../projects/projects.ts';
import { Refresher } from '../projects/refresher.ts';
import { Recorder } from '../records/recorder.ts';
import { SavedNames } from '../records/saved-names.ts';
import { SavedOffers } from '../records/saved-offers.ts';
import { SavedSessions } from '../records/saved-sessions.ts';
import type { Store } from '../store/store.ts';
import { limitsOf } from '../upstreams/settings.ts';
import type { AppEvents, AppOptions } from './options.ts';

export interface OpenDatabase {
  store: Store;
  status(): StatusView['database'];
}

/** Undefined without a database; then the store module is not loaded either. */
export async function openDatabase(
  { database, home, signal, killSignal }: AppOptions,
  { auditDays }: Settings,
  events: AppEvents,
): Promise<OpenDatabase | undefined> {
  const { mode } = database;
  if (mode === 'none') return undefined;
  const { openStore } = await import('../store/store.ts');
  let outage: string | undefined;
  const store = await openStore({
    url: mode === 'server' ? database.url : undefined,
    home,
    secretKey: database.secretKey,
    moveCredentials,
    auditDays,
    ...(signal === undefined ? {} : { signal }),
    ...(killSignal === undefined ? {} : { killSignal }),
    events: {
      progress: events.progressed,
      warned: events.warned,
      connectionChanged(isConnected, reason) {
        outage = isConnected ? undefined : reason;
        events.warned(
          isConnected
            ? 'The database is available again.'
            : `The database is unavailable: ${reason}. Calls continue; changes fail until it is available again.`,
        );
      },
    },
  });
  return { store, status: () => ({ mode, connected: store.isConnected, error: outage ?? null }) };
}

/** Everything that reads from the store or writes to it in the background. */
export class Persistence {
  readonly store: Store;
  readonly refresher: Refresher;
  readonly recorder: Recorder;
  readonly offers: SavedOffers;
  readonly sessions: SavedSessions;
  readonly names: SavedNames;
  private readonly projects: Projects;
  private readonly unsubscribe: () => void;

  constructor(store: Store, projects: Projects, { warned }: AppEvents, settings: Settings) {
    this.store = store;
    this.projects = projects;
    const redact = (id: string, text: string) => projects.lookUp(id)?.vault.redact(text) ?? text;
    this.refresher = new Refresher(store.projects, projects);
    this.recorder = new Recorder({
      write: (records) => store.calls.record(records),
      writePlain: (calls) => store.calls.recordPlain(calls),
      deleteOld: () => store.deleteExpired(),
      keepsPayloads: (id) => projects.lookUp(id)?.row.record_payloads ?? false,
      redact,
      warned,
    });
    this.offers = new SavedOffers({ table: store.offers, limits: limitsOf(settings).lists, redact, warned });
    this.sessions = new SavedSessions({ table: store.sessions, ...settings });
    this.names = new SavedNames({
      table: store.formerNames,
      scopes: projects,
      redact: ({ project }, text) =>
        (project === undefined ? projects.list() : [project]).reduce(
          (rest, { id }) => redact(id, rest),
          text,
        ),
      warned,
    });
    this.unsubscribe = store.subscribe((id) => this.refresher.follow(id));
  }

  async start(): Promise<void> {
    await this.offers.load();
    await this.refresher.refresh();
    this.offers.discardRest();
    await this.sessions.load();
    await this.names.restore();
    // Returning clients have seen the lists of the last run.
    if (this.sessions.areExpected) this.projects.show();
  }

  /** Ignores further changes, and saves the state that the next start restores. */
  async detach(): Promise<void> {
    this.unsubscribe();
    this.refresher.close();
    await Promise.all([this.offers.close(), this.sessions.close()]);
  }

  async close(): Promise<void> {
    await this.recorder.close();
    await this.store.close();
  }
}

export const noDatabase: StatusView['database'] = { mode: 'none', connected: false, error: null };

export function ownSecretsIn(database: AppOptions['database']): string[] {
  if (database.mode === 'none') return [];
  const keys = database.secretKey?.split(',').map((key) => key.trim()) ?? [];
  return database.mode === 'server' ? [...keys, ...passwordIn(database.url)] : keys;
}

/** Short passwords, and those that equal the user name, occur in too many other texts to be masked. */
function passwordIn(url: string): string[] {
  const { username, password = '' } = URL.parse(url) ?? {};
  return password.length < 8 || password === username ? [] : [password, querystring.unescape(password)];
}

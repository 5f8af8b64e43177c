import querystring from 'node:querystring';
import type { StatusView } from '../api/views.ts';
import { moveCredentials, type Settings } from '../config.ts';
import type { Projects } from '../projects/projects.ts';
import { Refresher } from '../projects/refresher.ts';
import { StoredNames } from '../records/saved-names.ts';
import { StoredOffers } from '../records/saved-offers.ts';
import { Recorder } from '../records/recorder.ts';
import type { SealedSecret } from '../store/secrets.ts';
import type { Store } from '../store/store.ts';
import { limitsOf } from '../upstreams/settings.ts';
import type { AppEvents, AppOptions } from './options.ts';
import { StoredSessions } from '../records/saved-sessions.ts';

/** What depends on the database. */
export interface Stored {
  store: Store;
  refresher: Refresher;
  recorder: Recorder;
  memory: StoredOffers;
  sessions: StoredSessions;
  names: StoredNames;
}

/** What the program keeps, and how its database fares. */
export class Storage {
  readonly store: Store;
  private readonly mode: StatusView['database']['mode'];
  private trouble: string | undefined;
  private unfollow = () => {};

  private constructor(store: Store, mode: StatusView['database']['mode']) {
    this.store = store;
    this.mode = mode;
  }

  /** Loaded only where there is a database: commands that run for a moment need none. */
  static async open(
    { database, home, signal, killSignal }: AppOptions,
    events: AppEvents,
  ): Promise<Storage | undefined> {
    if (database.mode === 'none') return undefined;
    const { openStore } = await import('../store/store.ts');
    let storage: Storage | undefined;
    const store = await openStore({
      url: database.mode === 'server' ? database.url : undefined,
      home,
      secretKey: database.secretKey,
      moveCredentials,
      ...(signal === undefined ? {} : { signal }),
      ...(killSignal === undefined ? {} : { killSignal }),
      events: {
        progress: events.progressed,
        warned: events.warned,
        connectionChanged(isConnected, reason) {
          if (storage !== undefined) storage.trouble = isConnected ? undefined : reason;
          events.warned(
            isConnected
              ? 'The database is back.'
              : `The database is away: ${reason}. Calls go on; changes fail until it is back.`,
          );
        },
      },
    });
    storage = new Storage(store, database.mode);
    return storage;
  }

  openSecret(sealed: SealedSecret): string {
    return this.store.secrets.open(sealed);
  }

  /** Keeps the projects up to what is stored, from now on. */
  serve(projects: Projects, { warned }: AppEvents, settings: Settings): Stored {
    const { store } = this;
    const redact = (id: string, text: string) => projects.lookUp(id)?.vault.redact(text) ?? text;
    const refresher = new Refresher(store.projects, projects);
    const recorder = new Recorder({
      write: (records) => store.calls.record(records),
      writePlain: (calls) => store.calls.recordPlain(calls),
      deleteOld: () => store.deleteExpired(),
      keepsPayloads: (id) => projects.lookUp(id)?.row.record_payloads ?? false,
      redact,
      warned,
    });
    const memory = new StoredOffers({
      table: store.offers,
      limits: limitsOf(settings).lists,
      redact,
      warned,
    });
    const sessions = new StoredSessions({ table: store.sessions, ...settings });
    const names = new StoredNames({
      table: store.formerNames,
      scopes: projects,
      redact: ({ project }, text) =>
        (project === undefined ? projects.list() : [project]).reduce(
          (rest, { id }) => redact(id, rest),
          text,
        ),
      warned,
    });
    this.unfollow = store.subscribe((id) => refresher.follow(id));
    return { store, refresher, recorder, memory, sessions, names };
  }

  /** Brings everything to what is written down. */
  async begin({ refresher, memory, sessions, names }: Stored, projects: Projects): Promise<void> {
    await memory.load();
    await refresher.refresh();
    memory.forgetOthers();
    await sessions.load();
    await names.load();
    // Clients that come back were shown what was listed last.
    if (sessions.areExpected) projects.show();
  }

  get status(): StatusView['database'] {
    return { mode: this.mode, connected: this.store.isConnected, error: this.trouble ?? null };
  }

  /** Nothing that others change is of interest any more, and what clients and servers do neither. Writes what is left of that. */
  async leave({ refresher, memory, sessions }: Stored): Promise<void> {
    this.unfollow();
    refresher.close();
    await Promise.all([memory.close(), sessions.close()]);
  }

  async close({ recorder }: Stored): Promise<void> {
    await recorder.close();
    await this.store.close();
  }
}

export const noStorage: StatusView['database'] = { mode: 'none', connected: false, error: null };

/** The keys of secrets, and the password of the database. */
export function ownSecretsIn(database: AppOptions['database']): string[] {
  if (database.mode === 'none') return [];
  const keys = database.secretKey?.split(',').map((key) => key.trim()) ?? [];
  return database.mode === 'server' ? [...keys, ...passwordIn(database.url)] : keys;
}

/** One that is as good as none, such as the user's name, stands in too many other texts. */
function passwordIn(url: string): string[] {
  const { username, password = '' } = URL.parse(url) ?? {};
  return password.length < 8 || password === username ? [] : [password, querystring.unescape(password)];
}

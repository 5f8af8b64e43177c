import { setTimeout as delay } from 'node:timers/promises';
import { SwitchboardError } from '../errors.ts';
import { type Address, addressOf } from './address.ts';
import { Calls } from './calls.ts';
import { endClient, newClient } from './client.ts';
import { Credentials } from './credentials.ts';
import { Database } from './database.ts';
import { type EmbeddedPostgres, startEmbedded } from './embedded.ts';
import { isUnavailable, reasonOf } from './failure.ts';
import { FormerNamesTable } from './former-names.ts';
import { HostLock } from './host-lock.ts';
import { openKeyring } from './keyring.ts';
import { Listener } from './listener.ts';
import { migrate } from './migrate.ts';
import { Offers } from './offers.ts';
import { Products } from './products.ts';
import { Projects } from './projects.ts';
import { Runs } from './runs.ts';
import { Secrets } from './secrets.ts';
import { ServerRows } from './servers.ts';
import { Sessions } from './sessions.ts';
import { setSwitch } from './switches.ts';
import type { Store, StoreOptions } from './types.ts';
import { Workspaces } from './workspaces.ts';

export type * from './types.ts';

const PATIENCE_MS = 30_000;
const RETRY_MS = 500;

/** Connects to the database, starts it before where it is our own, and brings its tables up to date. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { url, home, secretKey, events } = options;
  const keyring = openKeyring(home, secretKey, events.warned);
  const given = url === undefined ? undefined : addressOf(url);
  const embedded = given === undefined ? await startEmbedded(options) : undefined;
  try {
    const address = given ?? embedded!.address;
    await prepare(address, options);
    return await connect(address, keyring, embedded, options);
  } catch (error) {
    await embedded?.stop();
    throw error;
  }
}

async function connect(
  address: Address,
  keyring: ReturnType<typeof openKeyring>,
  embedded: EmbeddedPostgres | undefined,
  { events, moveCredentials }: StoreOptions,
): Promise<Store> {
  const followers = new Set<(projectId: string | undefined) => void>();
  const listener = new Listener(address, {
    changed(projectId) {
      for (const tell of followers) tell(projectId);
    },
    connectionChanged: events.connectionChanged,
    silent: () => database.cut(),
  });
  const database = new Database(address, {
    outage: () => listener.outage,
    suspected: () => void listener.check(),
  });
  await listener.start();
  const projects = new Projects(database);
  const secrets = new Secrets(database, keyring);
  const credentials = new Credentials(secrets, moveCredentials);
  const servers = new ServerRows(database, credentials);
  const workspaces = new Workspaces(database, credentials);
  const locks = new Set<HostLock>();
  const products = new Products(database, credentials);
  const calls = new Calls(database);
  const runs = new Runs(database);
  const offers = new Offers(database);
  const sessions = new Sessions(database);
  const formerNames = new FormerNamesTable(database);
  try {
    await secrets.warnOfMissingKeys(events.warned);
    await credentials.moveStored(database, events.warned);
  } catch (error) {
    await Promise.all([listener.close(), database.close()]);
    throw error;
  }

  return {
    projects: () => projects.states(),
    project: (id) => projects.state(id),
    follow(tell) {
      followers.add(tell);
      return () => followers.delete(tell);
    },
    get isConnected() {
      return listener.outage === undefined;
    },
    createProject: (input) => projects.create(input),
    changeProject: (...change) => projects.change(...change),
    deleteProject: (...deletion) => projects.delete(...deletion),
    createServers: (...creation) => servers.create(...creation),
    changeServer: (...change) => servers.change(...change),
    deleteServer: (...deletion) => servers.delete(...deletion),
    createHosted: (...creation) => workspaces.create(...creation),
    changeHosted: (...change) => workspaces.change(...change),
    deleteHosted: (...deletion) => workspaces.delete(...deletion),
    noteHosted: (...note) => workspaces.note(...note),
    host(tell) {
      const lock = new HostLock(address, tell);
      locks.add(lock);
      lock.start();
      return () => void lock.release().then(() => locks.delete(lock));
    },
    installProduct: (...installation) => products.install(...installation),
    products: (projectId) => products.list(projectId),
    removeProduct: (...removal) => products.remove(...removal),
    setSwitch: (...change) => setSwitch(database, ...change),
    putSecret: (...secret) => secrets.put(...secret),
    deleteSecret: (...deletion) => secrets.delete(...deletion),
    openSecret: (sealed) => secrets.open(sealed),
    rotateSecrets: () => secrets.rotate(),
    recordCalls: (records) => calls.record(records),
    recordPlainCalls: (plain) => calls.recordPlain(plain),
    calls: (...question) => calls.list(...question),
    async deleteOld() {
      let deleted = 0;
      for (const kept of [calls, runs, offers, sessions, formerNames]) deleted += await kept.deleteOld();
      return deleted;
    },
    offers: () => offers.all(),
    keepOffer: (offer) => offers.keep(offer),
    seeOffer: (offer) => offers.see(offer),
    sessionsSeenWithin: (...question) => sessions.seenWithin(...question),
    keepSessions: (rows) => sessions.keep(rows),
    seeSessions: (hashes) => sessions.see(hashes),
    forgetSessions: (hashes) => sessions.forget(hashes),
    formerNames: () => formerNames.all(),
    keepFormerNames: (row) => formerNames.keep(row),
    createRun: (run) => runs.create(run),
    addRunMessages: (...added) => runs.addMessages(...added),
    seeRuns: (ids) => runs.see(ids),
    seeRun: (...run) => runs.seeOne(...run),
    giveUpLostRuns: () => runs.giveUpLost(),
    finishRun: (...end) => runs.finish(...end),
    runs: (...question) => runs.list(...question),
    run: (...question) => runs.get(...question),
    async close() {
      followers.clear();
      const released = [...locks].map((lock) => lock.release());
      await Promise.all([...released, listener.close(), database.close()]);
      await embedded?.stop();
    },
  };
}

/** A server that is being started together with us gets some time. */
async function prepare(address: Address, { events, signal }: StoreOptions): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  for (let hasTold = false; ; hasTold = true) {
    const client = newClient(address);
    try {
      await client.connect();
      await migrate(client);
      return;
    } catch (error) {
      signal?.throwIfAborted();
      if (!isUnavailable(error)) throw refused(address, error);
      if (Date.now() > deadline) throw unreachable(address, error);
      if (!hasTold) events.progress(`waiting for the database at ${address.label}: ${reasonOf(error)}`);
      await delay(RETRY_MS, undefined, signal === undefined ? {} : { signal });
    } finally {
      await endClient(client);
    }
  }
}

function unreachable({ label }: Address, error: unknown): SwitchboardError {
  return new SwitchboardError(
    'database_unavailable',
    `The database at ${label} cannot be reached: ${reasonOf(error)}. Start it, or set DATABASE_URL to one that runs; without DATABASE_URL, Switchboard runs its own.`,
    { cause: error },
  );
}

function refused({ label }: Address, error: unknown): unknown {
  if (error instanceof SwitchboardError) return error;
  return new SwitchboardError(
    'invalid_config',
    `The database at ${label} cannot be used: ${reasonOf(error)}. See DATABASE_URL.`,
    { cause: error },
  );
}

import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { openStore, type Store, type StoreOptions } from '../../src/store/store.ts';
import { freshDatabase } from './database.ts';
import { removeHome } from './postgres.ts';

interface TestStore extends Store, AsyncDisposable {
  told: string[];
  home: string;
}

export async function openTestStore(options: Partial<StoreOptions> = {}): Promise<TestStore> {
  const home = options.home ?? (await temporaryHome()).path;
  const told: string[] = [];
  const forgetHome = async () => {
    if (options.home === undefined) await removeHome(home);
  };
  const store = await openStore({
    url: undefined,
    secretKey: undefined,
    events: {
      progress: (message) => told.push(`progress: ${message}`),
      warned: (message) => told.push(`warned: ${message}`),
      connectionChanged: (isConnected, reason) => told.push(isConnected ? 'connected' : `lost: ${reason}`),
    },
    ...options,
    home,
  }).catch(async (error: unknown) => {
    await forgetHome();
    throw error;
  });
  const dispose = async () => {
    await store.close();
    await forgetHome();
  };
  return Object.defineProperties(store, {
    told: { value: told },
    home: { value: home },
    [Symbol.asyncDispose]: { value: dispose },
  }) as TestStore;
}

export async function temporaryHome(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'switchboard-home-'));
  return { path, [Symbol.asyncDispose]: () => removeHome(path) };
}

/** One store with its own database for all tests of a file. */
export async function storeForTests() {
  const database = await freshDatabase();
  const store = await openTestStore({ url: database.url });
  afterAll(async () => {
    await store[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });
  let count = 0;
  const newProject = async () => (await store.projects.create({ name: `project-${++count}` })).id;
  return { database, store, newProject };
}

export async function defaultProjectOf(store: Store): Promise<string> {
  return (await store.projects.all()).find(({ project }) => project.name === 'default')!.project.id;
}

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { type Account, findAccount } from '../../src/store/embedded/account.ts';
import { type Binaries, findBinaries } from '../../src/store/embedded/binaries.ts';
import { migrate } from '../../src/store/migrate.ts';
import { freePort } from '../helpers/free-port.ts';
import { findPart } from '../helpers/parts.ts';
import { patienceMs } from '../helpers/patience.ts';

/** The PostgreSQL server that all tests of a run share. */
export interface SharedPostgres {
  /** Of Debian, or the one that Switchboard brings. */
  isDebian: boolean;
  folder: string;
  port: number;
  user: string;
  password: string;
  /** A database that has all tables, to copy. */
  template: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    postgres: SharedPostgres;
  }
}

const user = 'tester';
const template = 'switchboard_template';

/** Starts the server before the first test, and ends it after the last one. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-postgres-'));
  const data = join(folder, 'data');
  await mkdir(data, { mode: 0o700 });
  const part = findPart('postgres');
  const isDebian = 'command' in part;
  const binaries = isDebian ? siblings(part.command) : await findBinaries();
  // As far as a user needs who runs it in the place of root.
  await chmod(folder, 0o711);
  const account = findAccount(folder, data, binaries);
  if (account.owner !== undefined) await chown(data, account.owner.uid, account.owner.gid);
  const password = randomBytes(12).toString('hex');
  const port = await freePort();
  await create(data, password, binaries, account);
  const server = start(data, port, binaries, account);
  const cleaner = cleanWhenGone(server.pid!, folder);
  const facts: SharedPostgres = { isDebian, folder: data, port, user, password, template };
  const stop = async () => {
    const cleaned = once(cleaner, 'exit');
    cleaner.stdin!.end();
    await cleaned;
  };
  try {
    await makeTemplate(facts, server);
  } catch (error) {
    await stop();
    throw error;
  }
  project.provide('postgres', facts);
  return stop;
}

async function create(
  data: string,
  password: string,
  { initdb }: Binaries,
  { prefix, owner }: Account,
): Promise<void> {
  const passwordFile = join(dirname(data), 'password');
  await writeFile(passwordFile, password, { mode: 0o644 });
  const [command, ...args] = [
    ...prefix,
    initdb,
    ...[`--pgdata=${data}`, `--username=${user}`, `--pwfile=${passwordFile}`],
    ...['--auth-local=trust', '--auth-host=scram-sha-256', '--encoding=UTF8', '--locale=C', '--no-sync'],
  ];
  await promisify(execFile)(command!, args, { ...owner, cwd: '/' });
  await rm(passwordFile);
}

function start(data: string, port: number, { postgres }: Binaries, { prefix, owner }: Account): ChildProcess {
  const settings = [
    ...['listen_addresses=127.0.0.1', `port=${port}`, `unix_socket_directories=${data}`],
    ...['fsync=off', 'max_connections=300', 'shared_buffers=64MB', 'log_min_messages=fatal'],
  ];
  const [command, ...args] = [
    ...prefix,
    postgres,
    '-D',
    data,
    ...settings.flatMap((setting) => ['-c', setting]),
  ];
  return spawn(command!, args, { ...owner, cwd: '/', stdio: 'ignore', detached: true });
}

/** Ends the server and removes its files when it is told to, and also when we are gone without a word. */
function cleanWhenGone(pid: number, folder: string): ChildProcess {
  const script =
    'cat > /dev/null; kill -QUIT $0; while kill -0 $0 2> /dev/null; do sleep 0.05; done; rm -rf "$1"';
  return spawn('sh', ['-c', script, String(pid), folder], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  });
}

async function makeTemplate(
  { folder, port, user, template }: SharedPostgres,
  server: ChildProcess,
): Promise<void> {
  const administrator = await connect({ host: folder, port, user, database: 'postgres' }, server);
  await administrator.query(`CREATE DATABASE ${template}`);
  const client = await connect({ host: folder, port, user, database: template }, server);
  await migrate(client);
  await client.end();
  await administrator.query(`ALTER DATABASE ${template} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false`);
  await administrator.end();
}

async function connect(config: pg.ClientConfig, server: ChildProcess): Promise<pg.Client> {
  for (const deadline = Date.now() + patienceMs; ; await delay(20)) {
    const client = new pg.Client(config);
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (server.exitCode !== null || Date.now() > deadline) throw error;
    }
  }
}

function siblings(postgres: string): Binaries {
  return { postgres, initdb: join(dirname(postgres), 'initdb') };
}

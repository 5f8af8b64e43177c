import { once } from 'node:events';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { postgresIn } from '../helpers/postgres.ts';
import { exchange, openExchange } from '../helpers/raw-http.ts';
import { temporaryHome } from '../helpers/store.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { tokenHeader } from '../helpers/with-key.ts';
import { Random } from '../soak/random.ts';
import { Model } from './model.ts';
import { observe } from './observe.ts';
import { type Change, keptSecrets } from './units.ts';

const atOnce = 5;
/** About the duration of a change. */
const longestDelayMs = 12;

/** Makes all kinds of changes with kills in between, and checks that every acknowledged change is kept, and no partial one. */
export async function loseNoChange(changeCount: number, killCount: number): Promise<void> {
  const seed = Number(process.env.CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`CRASH_SEED=${seed}`);
  const random = new Random(seed);
  const model = new Model(random);
  await using home = await temporaryHome();
  await using started = new AsyncDisposableStack();
  const start = async () => started.use(await startOn(home.path));

  let switchboard = await start();
  await createBaseline(switchboard);
  model.compare(await observe(switchboard));
  const killedWithPostgres = random.below(killCount);
  const thresholds = Array.from({ length: killCount }, () => random.below(changeCount)).sort((a, b) => a - b);
  for (const [index, threshold] of thresholds.entries()) {
    await change(switchboard, model, {
      until: threshold,
      random,
      isKilledWithPostgres: index === killedWithPostgres,
    });
    switchboard = await start();
    expect(model.compare(await observe(switchboard)), `after kill ${index + 1}`).toEqual([]);
  }
  await change(switchboard, model, { until: changeCount });
  expect(model.compare(await observe(switchboard))).toEqual([]);
  const { made, notMade } = model.unanswered;
  // Otherwise no kill has interrupted a change.
  expect(made + notMade).toBeGreaterThan(killCount);

  await end(switchboard, 'SIGTERM');
  expect(postgresIn(home.path)).toBe(undefined);
  await expect.poll(() => processesOf(home.path)).toEqual([]);
  switchboard = await start();
  expect(model.compare(await observe(switchboard)), 'after the last start').toEqual([]);
}

/** Servers that report their secrets and tools; no others are ever started. */
function startOn(home: string): Promise<RunningSwitchboard> {
  const mark = { CRASH_TEST_HOME: home };
  const mcpServers = { box: fixtureServer('toolbox', mark), spare: fixtureServer('toolbox', mark) };
  return startSwitchboard(mcpServers, { auth: true }, { home, database: 'embedded' });
}

async function createBaseline({ baseUrl, home }: RunningSwitchboard): Promise<void> {
  const { command, args } = fixtureServer('toolbox');
  const env = Object.fromEntries(keptSecrets.map((name) => [name, `\${${name}}`]));
  const secrets = keptSecrets.map((name) => ['PUT', `/projects/default/secrets/${name}`, { value: 'first' }]);
  const steps = [
    ...secrets,
    [
      'POST',
      '/projects/default/servers',
      { name: 'reader', transport: 'stdio', config: { command, args, env } },
    ],
    ['POST', '/projects', { name: 'work' }],
  ] as [string, string, object][];
  const headers = await headersFor(home);
  for (const [method, path, body] of steps) {
    const answer = await exchange(`${baseUrl}/api/v1${path}`, { method, headers, body });
    expect(answer.status, answer.text).toBe(201);
  }
}

interface ChangeOptions {
  /** The number of acknowledged changes after which it ends, or after which the kill follows. */
  until: number;
  /** Chooses the exact moment of the kill; without it there is none. */
  random?: Random;
  isKilledWithPostgres?: boolean;
}

/** Makes concurrent changes until there are enough; the kill interrupts those in flight. */
async function change(
  switchboard: RunningSwitchboard,
  model: Model,
  { until, random, isKilledWithPostgres = false }: ChangeOptions,
): Promise<void> {
  let killing: Promise<void> | undefined;
  const kill = async (afterMs: number) => {
    await delay(afterMs);
    if (isKilledWithPostgres) process.kill(postgresIn(switchboard.home)!, 'SIGKILL');
    await end(switchboard, 'SIGKILL');
  };
  const work = async () => {
    while (random !== undefined || model.acknowledged < until) {
      const next = model.begin();
      const answer = answerTo(switchboard, next);
      if (random !== undefined && model.acknowledged >= until)
        killing ??= kill(random.fraction() * longestDelayMs);
      const { status, said } = await answer;
      if (status === undefined || (isKilledWithPostgres && status === 503)) return;
      expect(status, `${next.method} ${next.path}: ${said}`).toBeLessThan(300);
      model.acknowledge(next);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  await killing;
}

async function headersFor(home: string): Promise<Record<string, string>> {
  return { ...(await tokenHeader(home)), 'content-type': 'application/json' };
}

/** The status alone acknowledges a change. Undefined if the connection breaks before it. */
async function answerTo(
  { baseUrl, home }: RunningSwitchboard,
  { method, path, body }: Change,
): Promise<{ status: number | undefined; said?: string }> {
  const headers = await headersFor(home);
  try {
    const response = await openExchange(`${baseUrl}/api/v1${path}`, { method, headers, body });
    const status = response.statusCode!;
    return { status, said: await text(response).catch(() => '') };
  } catch {
    return { status: undefined };
  }
}

async function end({ process: child }: RunningSwitchboard, signal: NodeJS.Signals): Promise<void> {
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}

/** All processes that run in the home folder or were started from it: PostgreSQL and the servers. */
async function processesOf(home: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const commands = pids.map(async (pid) => {
    try {
      const [command, environment, folder] = await Promise.all([
        readFile(`/proc/${pid}/cmdline`, 'utf8'),
        readFile(`/proc/${pid}/environ`, 'utf8'),
        readlink(`/proc/${pid}/cwd`),
      ]);
      const isOurs = [command, environment, folder].some((facts) => facts.includes(home));
      return isOurs ? [`${pid} ${command}`] : [];
    } catch {
      // It has ended, or belongs to another user.
      return [];
    }
  });
  return (await Promise.all(commands)).flat();
}

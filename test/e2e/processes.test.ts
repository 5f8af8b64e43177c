import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { connectHttp, textOf } from '../helpers/clients.ts';
import { setUp } from '../helpers/set-up.ts';
import {
  fixtureServer,
  type RunningSwitchboard,
  referenceServer,
  startSwitchboard,
} from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const isReady = (name: string) => (event: { [key: string]: unknown }) =>
  event.event === 'server' && event.name === name && event.state === 'ready';

describe('servers that start together', () => {
  let witness: Witness;
  let switchboard: RunningSwitchboard;

  setUp(async (use) => {
    witness = use(await Witness.open());
    switchboard = use(
      await startSwitchboard(
        {
          recipes: fixtureServer('reports-messages', witness.env('recipes')),
          fetch: fixtureServer('reports-messages', witness.env('fetch')),
        },
        { startup: 'parallel' },
      ),
    );
  });

  it.each(['recipes', 'fetch'])('%s is spawned and finishes the handshake [M1]', async (name) => {
    await switchboard.event(isReady(name));
    const handshake = await witness.severalOf(name, 'message', 3);
    const methods = ['server/discover', 'initialize', 'notifications/initialized'];
    expect(handshake.map(({ method }) => method)).toEqual(methods);
  });

  it('each have a separate process and count their own requests [M2]', async () => {
    await using connected = await connectHttp(switchboard.url);
    const { client } = connected;
    for (const tool of ['recipes__whoami', 'fetch__whoami', 'recipes__whoami', 'recipes__whoami']) {
      await client.callTool({ name: tool });
    }
    const requestIds = async (name: string, count: number) => {
      const requests = await witness.severalOf(name, 'message', count, ({ id }) => id !== undefined);
      return requests.map(({ id }) => id);
    };
    const counted = (length: number) => Array.from({ length }, (_, index) => index + 1);
    // The handshake takes two requests, and the list of tools one.
    expect(await requestIds('recipes', 3 + 3)).toEqual(counted(3 + 3));
    expect(await requestIds('fetch', 3 + 1)).toEqual(counted(3 + 1));

    const { pid } = await witness.sees('recipes', 'start');
    expect((await witness.sees('fetch', 'start')).pid).not.toBe(pid);
  });

  it('are tracked by name: when one process exits, only that server restarts [M2]', async () => {
    const { pid } = await witness.sees('fetch', 'start');
    process.kill(pid, 'SIGKILL');
    const failure = await switchboard.event(
      ({ event, state }) => event === 'server' && state === 'backing_off',
    );
    expect(failure.name).toBe('fetch');
    await switchboard.event(
      ({ name, state, from, since }) =>
        name === 'fetch' && state === 'ready' && from === 'starting' && since! > failure.since!,
    );

    const response = await fetch(`${switchboard.baseUrl}/api/v1/projects/default/servers`);
    const { servers } = (await response.json()) as {
      servers: { name: string; state: string; restarts: number }[];
    };
    expect(servers.map(({ name, state, restarts }) => [name, state, restarts])).toEqual([
      ['recipes', 'ready', 0],
      ['fetch', 'ready', 1],
    ]);
  });
});

it.concurrent('a server sees its own environment, and neither that of another server nor that of Switchboard [M9]', async () => {
  await using switchboard = await startSwitchboard(
    {
      recipes: {
        ...referenceServer('everything'),
        env: { API_KEY: 'of recipes', USER_EMAIL: 'cook@example.com' },
      },
      fetch: { ...referenceServer('everything'), env: { PROXY: 'of fetch' } },
    },
    { inheritNetwork: false },
    { env: { GATEWAY_TOKEN: 'of the gateway' } },
  );
  await using connected = await connectHttp(switchboard.url);
  const environmentOf = async (server: string) =>
    JSON.parse(textOf(await connected.client.callTool({ name: `${server}__get-env` }))) as object;

  const recipes = await environmentOf('recipes');
  const fetch = await environmentOf('fetch');
  expect(recipes).toMatchObject({ API_KEY: 'of recipes', USER_EMAIL: 'cook@example.com' });
  expect(fetch).toMatchObject({ PROXY: 'of fetch' });
  const foreign = (environment: object) => Object.keys(environment).filter((name) => !isSafe(name));
  expect(foreign(recipes)).toEqual(['API_KEY', 'USER_EMAIL']);
  expect(foreign(fetch)).toEqual(['PROXY']);
});

it.concurrent('a server starts with its command, arguments and environment and speaks over stdio [M10, P3]', async () => {
  await using witness = await Witness.open();
  const words = ['--name', 'two words', '', '$HOME "quoted" *', 'ünïcode'];
  await using switchboard = await startSwitchboard({
    recorder: fixtureServer('reports-messages', { ...witness.env('recorder'), TOKEN: 'given' }, ...words),
  });
  await using connected = await connectHttp(switchboard.url);
  const answer = JSON.parse(textOf(await connected.client.callTool({ name: 'whoami' })));

  expect(await witness.sees('recorder', 'arguments')).toMatchObject({ arguments: words });
  expect(answer.env.TOKEN).toBe('given');
  expect(answer.parent).toBe(switchboard.process.pid);
});

it.concurrent('"isolation": "session" gives each client a separate process, which exits with the client', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard({
    recorder: { ...fixtureServer('reports-messages', witness.env('recorder')), isolation: 'session' },
  });
  const staying = await connectHttp(switchboard.url);
  const leaving = await connectHttp(switchboard.url);
  const processOf = async ({ client }: typeof staying): Promise<number> =>
    JSON.parse(textOf(await client.callTool({ name: 'whoami' }))).pid;
  const [kept, ended] = await Promise.all([processOf(staying), processOf(leaving)]);
  expect(kept).not.toBe(ended);
  expect(await processOf(staying)).toBe(kept);

  await leaving[Symbol.asyncDispose]();
  await witness.sees('recorder', 'end', ({ pid }) => pid === ended);
  expect(await processOf(staying)).toBe(kept);
  await staying[Symbol.asyncDispose]();
  await witness.sees('recorder', 'end', ({ pid }) => pid === kept);
});

describe.concurrent('a process that is no longer needed', () => {
  const start = async (witness: Witness) => {
    const switchboard = await startSwitchboard(
      {
        stubborn: fixtureServer('ignores-sigterm', witness.env('stubborn')),
        forking: fixtureServer('leaves-grandchild', witness.env('forking')),
        kept: fixtureServer('reports-messages', witness.env('kept')),
      },
      { startup: 'parallel' },
    );
    await Promise.all(['stubborn', 'forking', 'kept'].map((name) => switchboard.event(isReady(name))));
    await witness.sees('forking-grandchild', 'start');
    return switchboard;
  };
  const allEnded = (witness: Witness) =>
    Promise.all(['stubborn', 'forking', 'forking-grandchild'].map((who) => witness.sees(who, 'end')));
  const orderOf = (witness: Witness, who: string) =>
    witness.sightings.items.filter((sighting) => sighting.who === who).map(({ saw }) => saw);

  it('gets SIGTERM, then SIGKILL, with its children, when its server leaves the configuration [P5]', async () => {
    await using witness = await Witness.open();
    await using switchboard = await start(witness);
    await switchboard.configure(
      { kept: fixtureServer('reports-messages', witness.env('kept')) },
      { startup: 'parallel' },
    );
    await allEnded(witness);

    expect(orderOf(witness, 'stubborn')).toEqual(['start', 'stdin end', 'SIGTERM', 'end']);
    expect(orderOf(witness, 'forking')).toEqual(['start', 'stdin end', 'end']);
    expect(orderOf(witness, 'forking-grandchild')).toEqual(['start', 'SIGTERM', 'end']);
    expect(orderOf(witness, 'kept')).not.toContain('end');
  });

  it('gets SIGTERM, then SIGKILL, with its children, when Switchboard stops [P5]', async () => {
    await using witness = await Witness.open();
    await using switchboard = await start(witness);
    const exit = once(switchboard.process, 'exit');
    switchboard.process.kill('SIGTERM');
    await allEnded(witness);

    expect(orderOf(witness, 'stubborn')).toEqual(['start', 'stdin end', 'SIGTERM', 'end']);
    expect(orderOf(witness, 'forking-grandchild')).toEqual(['start', 'SIGTERM', 'end']);
    await witness.sees('kept', 'end');
    expect(await exit).toEqual([0, null]);
  });
});

/** Every child may see the paths, the locale and which Switchboard started it. */
function isSafe(name: string): boolean {
  const safe = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'LANG', 'LANGUAGE'];
  if (name === 'SWITCHBOARD_INSTANCE') return true;
  return safe.includes(name) || name.startsWith('LC_');
}

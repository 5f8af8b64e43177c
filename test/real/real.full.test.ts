import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServerView } from '../../src/api/views.ts';
import { type ConnectedClient, connectHttp, textOf } from '../helpers/clients.ts';
import { freshDatabase } from '../helpers/database.ts';
import { requirePart } from '../helpers/parts.ts';
import { patienceMs } from '../helpers/patience.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { clients, codeUnder } from './clients.ts';
import { Compatibility, write, written } from './compatibility.ts';
import { openPlace } from './scene.ts';
import { type Place, type RealServer, servers } from './servers.ts';

const root = join(import.meta.dirname, '../..');
const resources = new AsyncDisposableStack();
const seen = new Compatibility();
let place: Place;
let running: RealServer[];
let listedBefore: string[];
/** The processes of servers wait until this file exists. */
let gate: string;
let start: (startup: 'parallel' | 'lazy') => Promise<RunningSwitchboard>;

beforeAll(async () => {
  place = resources.use(await openPlace());
  const database = resources.use(await freshDatabase());
  running = servers.filter((server) => !('missing' in server.config(place)));
  gate = join(place.folder, 'gate');
  const entries = running.map((server) => [server.name, gated(server.config(place))]);
  // All servers start at once, even on a few cores.
  const settings = { connectTimeoutMs: patienceMs, timeoutMs: patienceMs };
  start = (startup) =>
    startSwitchboard(Object.fromEntries(entries), settings, { database, args: ['--startup', startup] });
});
afterAll(() => resources.disposeAsync());

describe('published servers behind one Switchboard', () => {
  let switchboard: RunningSwitchboard;
  let connected: ConnectedClient;
  let views: Map<string, ServerView>;

  setUp(async (use) => {
    await writeFile(gate, '');
    switchboard = use(await start('parallel'));
    connected = use(await connectHttp(switchboard.url));
    listedBefore = await toolNames(connected);
    views = await viewsOf(switchboard);
  });

  it('are all ready', () => {
    expect([...views.values()].filter(({ state }) => state !== 'ready')).toEqual([]);
    expect(views.size).toBe(running.length);
    const counts = [...views.values()].map((view) => view.tool_count ?? 0);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(listedBefore.length);
  });

  it.for(servers)('$name responds to a call', async (server, test) => {
    const { name, tool, answer, kind } = server;
    if (server.part !== undefined) requirePart(server.part, test);
    const call = connected.client.callTool({
      name: `${name}__${tool}`,
      arguments: server.arguments(place),
    });
    if (kind === 'protocol error') {
      await expect(call).rejects.toThrow(answer);
    } else {
      const result = await call;
      expect(textOf(result)).toMatch(answer);
      expect(result.isError ?? false).toBe(kind === 'tool error');
    }
    seen.sawServer(server, views.get(name)?.tool_count ?? 0);
  });
});

describe('after a restart of Switchboard', () => {
  let switchboard: RunningSwitchboard;

  setUp(async (use) => {
    await rm(gate);
    switchboard = use(await start('lazy'));
  });

  it('the first list has all tools of all servers before their processes run', async () => {
    await using connected = await connectHttp(switchboard.url);
    expect(await toolNames(connected)).toEqual(listedBefore);
    const views = [...(await viewsOf(switchboard)).values()];
    const states = views.filter(({ transport }) => transport === 'stdio').map(({ state }) => state);
    expect(states).not.toContain('ready');
    await writeFile(gate, '');
  });

  it.for(clients)('$name lists all tools and calls one', async (client, test) => {
    if (client.part !== undefined) requirePart(client.part, test);
    const { tools, text } = await client.use({
      ...{ url: `${switchboard.baseUrl}/mcp/default`, folder: await mkdtemp(join(place.folder, 'client-')) },
      ...{ tool: 'everything__get-sum', input: { a: 2, b: 40 } },
    });
    expect(text).toContain('The sum of 2 and 40 is 42.');
    expect(tools).toBe(listedBefore.length);
    seen.sawClient(client);
  });
});

it('the framework code in docs/agents.md type-checks', async () => {
  const folder = join(import.meta.dirname, 'clients/.cache/types');
  await mkdir(folder, { recursive: true });
  const headings = ['Vercel AI SDK', 'LangChain.js', 'OpenAI Agents', 'Mastra'];
  for (const heading of headings)
    await writeFile(join(folder, `${heading.replaceAll(/\W/g, '-')}.ts`), await codeUnder(heading));
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'es2024', strict: true },
    ...{ noEmit: true, skipLibCheck: true, types: [] },
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  await promisify(execFile)(process.execPath, [compiler, '--project', folder]);
});

it('docs/compatibility.md is up to date; UPDATE_COMPATIBILITY=1 updates it', () => {
  if (process.env.UPDATE_COMPATIBILITY === '1') write(seen.page());
  expect(written()).toBe(seen.page());
});

/** The same server, started in a fixed folder once the gate is open. */
function gated(config: object): object {
  if (!('command' in config)) return config;
  const { command, args = [], ...more } = config as { command: string; args?: string[] };
  const wait = 'until test -e "$0"; do sleep 0.1; done; exec "$@"';
  return { ...more, cwd: place.folder, command: 'sh', args: ['-c', wait, gate, command, ...args] };
}

async function toolNames({ client }: ConnectedClient): Promise<string[]> {
  return (await client.listTools()).tools.map(({ name }) => name);
}

async function viewsOf({ baseUrl }: RunningSwitchboard): Promise<Map<string, ServerView>> {
  const response = await fetch(`${baseUrl}/api/v1/projects/default/servers`);
  const { servers: views } = (await response.json()) as { servers: ServerView[] };
  return new Map(views.map((view) => [view.name, view]));
}

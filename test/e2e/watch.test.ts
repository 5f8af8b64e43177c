import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ServerEvent } from '../../src/app.ts';
import { type RunningCli, runCli, startCli, temporaryFolder } from '../helpers/cli.ts';
import { freePort } from '../helpers/free-port.ts';
import { serveRaw } from '../helpers/http-exchange.ts';
import { EventStream, exchange, openExchange, type RawEvent, RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const EVENTS = '/api/v1/projects/default/events';
const SERVERS = '/api/v1/projects/default/servers';

async function startReady(): Promise<RunningSwitchboard> {
  const switchboard = await startSwitchboard({
    box: { ...fixtureServer('toolbox'), startup: 'parallel' },
    later: fixtureServer('notes'),
  });
  await switchboard.event(({ name, state }) => name === 'box' && state === 'ready');
  return switchboard;
}

async function killBox({ url }: RunningSwitchboard): Promise<void> {
  const session = await RawSession.open(url);
  process.kill(Number(await session.callText('pid')), 'SIGKILL');
}

async function openEvents({ baseUrl }: RunningSwitchboard): Promise<EventStream> {
  const stream = new EventStream(await openExchange(baseUrl + EVENTS, { method: 'GET' }));
  await stream.events.first(({ event }) => event === 'servers');
  return stream;
}

function changeIn({ event, data }: RawEvent): ServerEvent | undefined {
  return event === 'server' ? (JSON.parse(data!) as ServerEvent) : undefined;
}

function watch({ baseUrl }: RunningSwitchboard, ...words: string[]): RunningCli {
  return startCli(['watch', ...words, '--url', baseUrl]);
}

describe.concurrent('switchboard watch', () => {
  it('--json shows the state of servers, then a server that dies and restarts', async () => {
    await using switchboard = await startReady();
    await using watching = watch(switchboard, '--json');
    const [box, later] = (await watching.lines.several(2, () => true)).map((line) => JSON.parse(line));
    expect(box).toMatchObject({
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      server: { name: 'box', state: 'ready', tool_count: 8, replicas: [{ replica: 1, state: 'ready' }] },
      replica: null,
      from: null,
    });
    expect(later).toMatchObject({ server: { name: 'later', state: 'idle', tool_count: null } });

    await killBox(switchboard);
    const died = JSON.parse(await watching.lines.first((line) => JSON.parse(line).from === 'ready'));
    expect(died.server).toMatchObject({ name: 'box', error: expect.stringContaining('SIGKILL') });
    expect(died.server.state).not.toBe('ready');
    const session = await RawSession.open(switchboard.url);
    expect(await session.callText('echo', { text: 'back' })).toBe('back');
    const back = JSON.parse(await watching.lines.first((line) => JSON.parse(line).from === 'starting'));
    expect(back.server).toMatchObject({ name: 'box', state: 'ready', error: null });
  });

  it('shows a line per change of the named servers, without colours in a pipe', async () => {
    await using switchboard = await startReady();
    await using watching = watch(switchboard, 'box');
    await watching.lines.first(() => true);
    // The list also starts the other server, before the watched one changes.
    await (await RawSession.open(switchboard.url)).toolNames();
    await killBox(switchboard);
    await watching.lines.several(2, () => true);
    expect(watching.lines.items[0]).toMatch(
      /^\d\d:\d\d:\d\d {2}box {2}ready {9}8 tools, 0 resources, 0 prompts$/,
    );
    expect(watching.lines.items[1]).toMatch(
      /^\d\d:\d\d:\d\d {2}box {2}\w[\w ]{11} {2}Server "box" .*SIGKILL/,
    );
  });

  it('exits with success on Ctrl-C', async () => {
    await using switchboard = await startReady();
    await using watching = watch(switchboard);
    await watching.lines.several(2, () => true);
    watching.process.kill('SIGINT');
    expect(await watching.finished).toEqual({ code: 0, stderr: '' });
  });

  it.each([
    ['SIGTERM', /^The Switchboard at http\S+ has stopped\.\n$/],
    ['SIGKILL', /^The Switchboard at http\S+ is gone: .+\.\n$/],
  ] as const)('reports that Switchboard has stopped after %s', async (signal, message) => {
    await using switchboard = await startReady();
    await using watching = watch(switchboard, '--json');
    await watching.lines.several(2, () => true);
    switchboard.process.kill(signal);
    expect(await watching.finished).toEqual({ code: 3, stderr: expect.stringMatching(message) });
    expect(watching.lines.items).toHaveLength(2);
  });

  it('lists the known servers if one is unknown', async () => {
    await using switchboard = await startReady();
    expect(await runCli(['watch', 'box', 'bix', '--url', switchboard.baseUrl])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'error: There is no server "bix". There are: box, later.\n',
    });
  });

  it('explains how to start a Switchboard if none runs', async () => {
    const nobody = `http://127.0.0.1:${await freePort()}`;
    expect(await runCli(['watch', '--url', nobody])).toEqual({
      code: 3,
      stdout: '',
      stderr: `error: There is no Switchboard at ${nobody}. Start one with: switchboard up\n`,
    });
  });
});

it.concurrent('switchboard up shows the state of a server, but not each retry', async () => {
  await using folder = await temporaryFolder();
  const config = join(folder.path, 'mcp.json');
  await writeFile(
    config,
    JSON.stringify({ mcpServers: { box: { ...fixtureServer('toolbox'), startup: 'parallel' } } }),
  );
  await using running = startCli(['up', '--config', config, '--port', '0'], {
    SWITCHBOARD_HOME: folder.path,
  });
  const { lines } = running;
  const isReady = (line: string) => /^ {2}● box +ready +8 tools/.test(line);
  await lines.first(isReady);

  const [, url] = /endpoint +(\S+)/.exec(lines.items.find((line) => line.includes('endpoint'))!)!;
  const session = await RawSession.open(url!);
  process.kill(Number(await session.callText('pid')), 'SIGKILL');
  await lines.first((line) => /^ {2}[◐✗] box +\w[\w ]+ Server "box" .*SIGKILL/.test(line));
  expect(await session.callText('echo', { text: 'back' })).toBe('back');
  await lines.several(2, isReady);
  expect(lines.items.filter((line) => line.includes('starting'))).toEqual([]);
  running.process.kill('SIGINT');
  expect(await running.finished).toEqual({ code: 0, stderr: '' });
});

describe.concurrent('the events of the API', () => {
  it('start with the list of servers, and continue with transitions', async () => {
    await using switchboard = await startReady();
    const { events, response } = await openEvents(switchboard);
    expect(response.headers['content-type']).toBe('text/event-stream');
    const list = await exchange(switchboard.baseUrl + SERVERS, { method: 'GET' });
    expect(JSON.parse(events.items[0]!.data!)).toEqual(list.json);

    await killBox(switchboard);
    const died = changeIn(await events.first((event) => changeIn(event)?.from === 'ready'))!;
    expect(died).toMatchObject({ replica: null, server: { name: 'box', since: expect.any(String) } });
    const told = await switchboard.event(({ name, from }) => name === 'box' && from === 'ready');
    const { state, since, error, next_try } = died.server;
    expect(told).toMatchObject({ state, since, error, next_try, replica: null });
  });

  it('end when Switchboard stops, and do not keep it from stopping', async () => {
    await using switchboard = await startReady();
    const reader = await openEvents(switchboard);
    const exited = once(switchboard.process, 'exit');
    switchboard.process.kill('SIGTERM');
    await reader.ended;
    expect(reader.response.complete).toBe(true);
    expect(await exited).toEqual([0, null]);
  });
});

it('an event reader that never reads is disconnected, and no other', async () => {
  const refusal = 'HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n';
  const peer = await serveRaw((socket, part) => part === 1 && socket.end(refusal));
  await using switchboard = await startSwitchboard({});
  const { port, host } = new URL(switchboard.baseUrl);
  const idler = connect(Number(port), '127.0.0.1').pause();
  onTestFinished(() => void idler.destroy());
  idler.write(`GET ${EVENTS} HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  await once(idler, 'readable');
  const { events } = await openEvents(switchboard);

  // The error contains the path: a few long ones at a time, so that readers keep up, but in total more than the connection buffers hold.
  const names: string[] = [];
  while (names.length < 60) {
    for (let added = 0; added < 3; added++) names.push(`server_${names.length}`);
    const refused = { url: new URL('x'.repeat(100_000), peer.url).href, startup: 'parallel' };
    const mcpServers = Object.fromEntries(names.map((name) => [name, refused]));
    await switchboard.configure(mcpServers);
    for (const name of names.slice(-3)) {
      const { data } = await events.first(
        (event) => event.data?.includes(`"${name}"`) === true && changeIn(event)?.from === 'starting',
      );
      expect(data!.length).toBeGreaterThan(100_000);
    }
  }

  // Buffered data can still be read, but an open connection would not end.
  const read = await text(idler);
  expect(read).toContain('"server_2"');
  expect(read).not.toContain(names.at(-1));
  expect((await exchange(`${switchboard.baseUrl}/healthz`, { method: 'GET' })).status).toBe(200);
});

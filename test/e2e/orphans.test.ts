import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startScript } from '../helpers/processes.ts';
import { mainProgram } from '../helpers/programs.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const isReady = (name: string) => (event: { [key: string]: unknown }) =>
  event.event === 'server' && event.name === name && event.state === 'ready';

async function openHome() {
  const path = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
  const runFolder = join(path, 'run');
  return {
    path,
    runFolder,
    start: (mcpServers: object) =>
      startSwitchboard(mcpServers, { startup: 'parallel' }, { env: { SWITCHBOARD_HOME: path } }),
    records: () => readdir(runFolder),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  };
}

/** One exits neither at the end of stdin nor on SIGTERM; the other has such a child. */
const difficult = (witness: Witness) => ({
  stubborn: fixtureServer('ignores-sigterm', witness.env('stubborn')),
  forking: fixtureServer('leaves-grandchild', witness.env('forking')),
});

async function untilDifficultRun(switchboard: RunningSwitchboard, witness: Witness): Promise<void> {
  await Promise.all(['stubborn', 'forking'].map((name) => switchboard.event(isReady(name))));
  await witness.sees('forking-grandchild', 'start');
}

const difficultEnded = (witness: Witness) =>
  Promise.all(['stubborn', 'forking', 'forking-grandchild'].map((who) => witness.sees(who, 'end')));

async function kill(switchboard: RunningSwitchboard): Promise<void> {
  const exited = once(switchboard.process, 'exit');
  switchboard.process.kill('SIGKILL');
  await exited;
}

describe.concurrent('the next start after Switchboard was killed', () => {
  it('kills the remaining processes and their children, but no process that reused a pid [M12]', async () => {
    await using home = await openHome();
    await using witness = await Witness.open();
    await using killed = await home.start(difficult(witness));
    await untilDifficultRun(killed, witness);
    await kill(killed);
    // The server that exits with stdin leaves its grandchild behind.
    await witness.sees('forking', 'end');

    await using bystander = await startScript('echo ready; sleep 600');
    const [name] = await home.records();
    const record = JSON.parse(await readFile(join(home.runFolder, name!), 'utf8'));
    record.groups.push({ pid: bystander.pid, startTime: '1' });
    await writeFile(join(home.runFolder, name!), JSON.stringify(record));

    await using next = await home.start({});
    await difficultEnded(witness);
    expect(bystander.isAlive()).toBe(true);

    const { pid } = await witness.sees('stubborn', 'start');
    const { message } = await next.event(({ event }) => event === 'warning');
    expect(message).toContain(`A previous Switchboard (process ${killed.process.pid})`);
    expect(message).toContain(String(pid));
    expect(message).not.toContain(String(bystander.pid));
    expect(await home.records()).toEqual([expect.stringMatching(`^${next.process.pid}-`)]);
  });

  it('does not touch the servers of another Switchboard in the same home [M12]', async () => {
    await using home = await openHome();
    await using witness = await Witness.open();
    await using living = await home.start({ kept: fixtureServer('reports-messages', witness.env('kept')) });
    await using killed = await home.start({ left: fixtureServer('ignores-sigterm', witness.env('left')) });
    await Promise.all([living.event(isReady('kept')), killed.event(isReady('left'))]);
    await kill(killed);

    await using next = await home.start({});
    await witness.sees('left', 'end');
    const session = await RawSession.open(living.url);
    const { pid } = await witness.sees('kept', 'start');
    expect(JSON.parse(await session.callText('whoami')).pid).toBe(pid);
    expect(await home.records()).toHaveLength([living, next].length);
  });

  it('ignores other files in the folder', async () => {
    await using home = await openHome();
    await mkdir(join(home.runFolder, '12-34.json'), { recursive: true });
    await writeFile(join(home.runFolder, '1-1.json'), '{');
    await using witness = await Witness.open();
    await using switchboard = await home.start({
      any: fixtureServer('reports-messages', witness.env('any')),
    });
    await switchboard.event(isReady('any'));
    expect(switchboard.events.filter(({ event }) => event === 'warning')).toEqual([]);
  });
});

describe.concurrent('a Switchboard', () => {
  it('exits at once after a second signal, and leaves nothing behind [M12]', async () => {
    await using home = await openHome();
    await using witness = await Witness.open();
    await using switchboard = await home.start(difficult(witness));
    await untilDifficultRun(switchboard, witness);
    const exited = once(switchboard.process, 'exit');
    switchboard.process.kill('SIGINT');
    await witness.sees('stubborn', 'SIGTERM');
    switchboard.process.kill('SIGINT');
    expect(await exited).toEqual([130, null]);
    await difficultEnded(witness);
    expect(await home.records()).toEqual([]);
  });

  it('stops cleanly when its terminal is closed [M12]', async () => {
    await using home = await openHome();
    await using witness = await Witness.open();
    await using switchboard = await home.start(difficult(witness));
    await untilDifficultRun(switchboard, witness);
    const exited = once(switchboard.process, 'exit');
    switchboard.process.kill('SIGHUP');
    await witness.sees('stubborn', 'stdin end');
    // Both the shell and the kernel send the signal.
    switchboard.process.kill('SIGHUP');
    await difficultEnded(witness);
    expect(await exited).toEqual([0, null]);
    await witness.severalOf('stubborn', 'SIGTERM', 1);
    expect(witness.seenBy('stubborn', 'SIGTERM')).toHaveLength(1);
    expect(await home.records()).toEqual([]);
  });

  it('stops although a process has left its group and holds its pipes', async () => {
    await using home = await openHome();
    await using witness = await Witness.open();
    await using switchboard = await home.start({
      detaching: fixtureServer('spawns-daemon', witness.env('detaching')),
    });
    await switchboard.event(isReady('detaching'));
    await witness.sees('detaching-daemon', 'start');
    const exited = once(switchboard.process, 'exit');
    switchboard.process.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    witness.tell('detaching-daemon', 'end');
    await witness.sees('detaching-daemon', 'end');
  });

  it('works without the record if its home is read-only', async () => {
    await using home = await openHome();
    await writeFile(home.runFolder, 'a file where the folder would be');
    await using witness = await Witness.open();
    await using switchboard = await home.start({
      any: fixtureServer('reports-messages', witness.env('any')),
    });
    await switchboard.event(isReady('any'));
    const { message } = await switchboard.event(({ event }) => event === 'warning');
    expect(message).toContain('Cannot record the processes of servers');
  });
});

it('a command with temporary servers stops them when it is interrupted [M12]', async () => {
  await using home = await openHome();
  await using witness = await Witness.open();
  const config = join(home.path, 'mcp.json');
  const servers = { silent: fixtureServer('never-responds', witness.env('silent')) };
  await writeFile(
    config,
    JSON.stringify({
      mcpServers: servers,
      switchboard: { discoveryWaitMs: 3_600_000, connectTimeoutMs: 3_600_000 },
    }),
  );
  const command = spawn(process.execPath, [mainProgram, 'ls', 'tools', '--config', config], {
    env: { ...process.env, SWITCHBOARD_HOME: home.path },
    stdio: 'ignore',
  });
  const exited = once(command, 'exit');
  await witness.sees('silent', 'start');
  command.kill('SIGINT');
  expect(await exited).toEqual([130, null]);
  await witness.sees('silent', 'end');
  expect(await home.records()).toEqual([]);
});

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectHttp } from '../helpers/clients.ts';
import { attachTo, createContainer, runIn } from '../helpers/containers.ts';
import { dockerEvents, dockerRequest, type Engine, OwnEngine, sharedEngine } from '../helpers/docker.ts';
import { loopDevicesBelow } from '../helpers/docker-volumes.ts';
import { programsOf, shimSocketOf } from '../helpers/engine-remains.ts';
import { readSettings } from '../helpers/engine-settings.ts';
import { serverImage } from '../helpers/images.ts';
import { isRunning } from '../helpers/processes.ts';
import { dockerDriver } from './docker-driver.ts';

/** The kernel version that gVisor reports on every host. */
const gvisorKernel = 'Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n';
const ourKernel = readFileSync('/proc/version', 'utf8');
const readKernel = ['/usr/bin/node', '-p', "fs.readFileSync('/proc/version', 'utf8').trim()"];

describe('the Docker engine that tests share', () => {
  it.for([
    { runtime: 'runsc', kernel: gvisorKernel },
    { runtime: 'runc', kernel: ourKernel },
  ])('runs a server over stdio with $runtime', async ({ runtime, kernel }, { skip }) => {
    const engine = await sharedEngine({ skip });
    const container = await createContainer(engine, {
      Image: await serverImage(engine, 'toolbox'),
      OpenStdin: true,
      StdinOnce: true,
      HostConfig: { Runtime: runtime, NetworkMode: 'none' },
    });
    onTestFinished(async () => void (await container.remove()));
    using server = await attachTo(engine, container.id);
    await container.start();

    const call = { name: 'echo', arguments: { text: 'hello' } };
    server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })}\n`);
    const [line] = (await once(server.stdout, 'line')) as [string];
    expect(JSON.parse(line)).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: { content: [{ type: 'text', text: 'hello' }] },
    });
    expect(await runIn(engine, container.id, readKernel)).toEqual({
      exitCode: 0,
      stdout: kernel,
      stderr: '',
    });
  });

  it.for(['runsc', 'runc'])('runs a server on a port of loopback with %s', async (runtime, { skip }) => {
    const engine = await sharedEngine({ skip });
    const container = await createContainer(engine, {
      Image: await serverImage(engine, 'serves-http'),
      Env: ['PORT=8080'],
      ExposedPorts: { '8080/tcp': {} },
      HostConfig: { Runtime: runtime, PortBindings: { '8080/tcp': [{ HostIp: '127.0.0.1' }] } },
    });
    onTestFinished(async () => void (await container.remove()));
    using server = await attachTo(engine, container.id);
    await container.start();
    await once(server.stdout, 'line');

    const { NetworkSettings } = await dockerRequest<{
      NetworkSettings: { Ports: Record<string, { HostPort: string }[]> };
    }>(engine.socketPath, 'GET', `/containers/${container.id}/json`);
    const port = NetworkSettings.Ports['8080/tcp']![0]!.HostPort;
    await using connected = await connectHttp(`http://127.0.0.1:${port}/mcp`);
    expect(await connected.client.callTool({ name: 'kernel', arguments: {} })).toEqual({
      content: [{ type: 'text', text: runtime === 'runsc' ? gvisorKernel : ourKernel }],
    });
  });

  it('reports why it rejects a request', async ({ skip }) => {
    const { socketPath } = await sharedEngine({ skip });
    await expect(dockerRequest(socketPath, 'GET', '/containers/nobody/json')).rejects.toMatchObject({
      status: 404,
      message: expect.stringContaining('No such container: nobody'),
    });
  });
});

describe('a Docker engine of one test', () => {
  it('restarts with its containers and images', async ({ skip }) => {
    await using engine = await OwnEngine.start({ skip });
    const id = await runToolbox(engine);

    await engine.stop();
    await expect(dockerRequest(engine.socketPath, 'GET', '/info')).rejects.toThrow('ENOENT');
    await engine.start();
    expect(await stateOf(engine, id)).toMatchObject({ Running: false });
    await dockerRequest(engine.socketPath, 'POST', `/containers/${id}/start`);
    expect(await stateOf(engine, id)).toMatchObject({ Running: true });
  });

  it.for(['stop', 'kill'] as const)(
    'keeps its containers running after a %s if configured so',
    async (how, { skip }) => {
      await using engine = await OwnEngine.start({ skip }, { liveRestore: true });
      const id = await runToolbox(engine);
      const before = await stateOf(engine, id);

      await engine[how]();
      expect(isRunning(before.Pid)).toBe(true);
      await engine.start();
      expect(await stateOf(engine, id)).toEqual(before);
    },
  );

  it('reports the exit of a container', async ({ skip }) => {
    await using engine = await OwnEngine.start({ skip });
    const id = await runToolbox(engine);
    const events = dockerEvents(engine.socketPath, { container: [id], event: ['die'] }, 1);
    await dockerRequest(engine.socketPath, 'POST', `/containers/${id}/kill`);
    expect((await events.next()).value).toMatchObject({ Action: 'die', Actor: { ID: id } });
    await events.return(undefined);
  });

  it('limits the disk of a container if configured so', async ({ skip }) => {
    await using engine = await OwnEngine.start({ skip }, { quotas: true });
    const id = await runToolbox(engine, {
      Runtime: 'runsc',
      NetworkMode: 'none',
      StorageOpt: { size: '300M' },
    });
    const hog = `
      const file = fs.openSync('/hog', 'w');
      for (let written = 0; written < 300; written++) {
        fs.writeSync(file, crypto.randomBytes(2 ** 20));
        fs.fsyncSync(file);
      }
    `;
    const { exitCode, stderr } = await runIn(engine, id, ['/usr/bin/node', '-e', hog]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('errno: -122'); // EDQUOT, which node has no name for
  });

  it('leaves nothing behind', async ({ skip }) => {
    const engine = await OwnEngine.start({ skip }, { quotas: true });
    const traces = await makeTraces(engine);
    expect(traces()).toEqual(everything);
    await engine[Symbol.asyncDispose]();
    expect(traces()).toEqual(nothing);
  });

  it('leaves no loop device of a volume that Switchboard mounted', async ({ skip }) => {
    const engine = await OwnEngine.start({ skip });
    const folder = dirname(engine.socketPath);
    const { driver, spec } = await dockerDriver(engine, 'docker');
    await driver.start(
      spec('runs-commands', { volumes: ['/data'] }),
      { log() {} },
      new AbortController().signal,
    );
    expect(loopDevicesBelow(folder)).toHaveLength(1);
    await engine[Symbol.asyncDispose]();
    expect(existsSync(folder)).toBe(false);
    await expect.poll(() => loopDevicesBelow(folder)).toEqual([]);
  });

  it('is ended when the test run is killed', async ({ skip }) => {
    // Runs only the set-up, and then dies without clean-up.
    const run = spawn(process.execPath, ['--input-type=module', '--eval', fakeRun], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [folder] = (await once(createInterface({ input: run.stdout }), 'line')) as [string];
    const engine = await OwnEngine.start({ skip }, { under: folder });
    const traces = await makeTraces(engine);
    expect(traces()).toEqual(everything);

    run.kill('SIGKILL');
    while (existsSync(folder)) await delay(20);
    expect(traces()).toEqual(nothing);
  });
});

const fakeRun = `
  const { default: setup } = await import('../global/docker.ts');
  await setup({ provide: (name, folder) => console.log(folder) });
  setInterval(() => {}, 1000);
`;

const everything = {
  programs: true,
  containers: true,
  sockets: true,
  mounts: true,
  groups: true,
  bridges: 2,
  folder: true,
};
const nothing = {
  programs: false,
  containers: false,
  sockets: false,
  mounts: false,
  groups: false,
  bridges: 0,
  folder: false,
};

/** Makes an engine leave every kind of trace, and returns a function that lists them. */
async function makeTraces(engine: Engine) {
  const folder = dirname(engine.socketPath);
  const { group, networks } = readSettings(folder)!;
  const { socketPath } = engine;
  await dockerRequest(socketPath, 'POST', '/networks/create', { Name: 'own' });
  const ids = [
    await runToolbox(engine, { Runtime: 'runsc', NetworkMode: 'own' }),
    await runToolbox(engine, { Runtime: 'runc', NetworkMode: 'bridge', Binds: ['kept:/data'] }),
  ];
  const pids = await Promise.all(ids.map(async (id) => (await stateOf(engine, id)).Pid));
  const sockets = [...ids, await failToStart(engine)].map((id) => shimSocketOf(folder, id));
  return () => ({
    programs: programsOf(folder).length > 0,
    containers: pids.some(isRunning),
    sockets: sockets.some((path) => existsSync(path)),
    mounts: readFileSync('/proc/self/mounts', 'utf8').includes(folder),
    groups: globSync(`/sys/fs/cgroup/{.,*}/${group}`).length > 0,
    bridges: networks.filter((network) => execFileSync('ip', ['address', 'show', 'to', network]).length > 0)
      .length,
    folder: existsSync(folder),
  });
}

async function runToolbox(engine: Engine, host: object = { Runtime: 'runsc', NetworkMode: 'none' }) {
  const Image = await serverImage(engine, 'toolbox');
  const { id, start } = await createContainer(engine, { Image, OpenStdin: true, HostConfig: host });
  await start();
  return id;
}

/** Docker 20 leaks a process in this case. */
async function failToStart(engine: Engine): Promise<string> {
  const Image = await serverImage(engine, 'toolbox');
  const container = await createContainer(engine, {
    Image,
    Entrypoint: ['/nothing'],
    HostConfig: { Runtime: 'runsc' },
  });
  await expect(container.start()).rejects.toThrow('no such file or directory');
  await container.remove();
  return container.id;
}

async function stateOf({ socketPath }: Engine, id: string) {
  type Container = { State: { Running: boolean; Pid: number; StartedAt: string } };
  return (await dockerRequest<Container>(socketPath, 'GET', `/containers/${id}/json`)).State;
}

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DockerDriver } from '../../src/hosting/drivers/docker/driver.ts';
import { dockerRequest, type Engine, OwnEngine, sharedEngine } from '../helpers/docker.ts';
import { Inbox } from '../helpers/inbox.ts';
import { dockerDriver, dockerProviders } from './docker-driver.ts';

const never = new AbortController().signal;
const ignoreLog = { log() {} };

describe('a Docker engine that is stopped', () => {
  it.for(dockerProviders)(
    'does not disturb containers of %s when it keeps them running',
    async (provider, { skip }) => {
      await using engine = await OwnEngine.start({ skip }, { liveRestore: true });
      await using made = await dockerDriver(engine, provider);
      const spec = made.spec('runs-commands', { volumes: ['/data'] });
      const instance = await made.driver.start(spec, ignoreLog, never);
      instance.stdio!.input.write('write /tmp/mark here\n');
      expect(await lineOf(instance.stdio!.output)).toBe('written');
      const outputEnded = once(instance.stdio!.output.resume(), 'end');

      await engine.stop();
      expect(await instance.exited).toMatchObject({ code: undefined, signal: undefined, isLost: true });
      await outputEnded;
      expect(await made.driver.unavailable()).toContain(engine.socketPath);
      await expect(instance.usage()).rejects.toThrow(engine.socketPath);
      await expect(instance.stop(100)).rejects.toThrow(/may still be running/);
      await expect(made.driver.survivors.adopt(spec, ignoreLog)).rejects.toThrow(/cannot be reached/);
      await expect(made.driver.start(spec, ignoreLog, never)).rejects.toThrow(/cannot be reached/);

      await engine.start();
      const adopted = await made.driver.survivors.adopt(spec, ignoreLog);
      expect(adopted?.id).toBe(instance.id);
      expect(adopted?.startedAt).toEqual(instance.startedAt);
      adopted!.stdio!.input.write('read /tmp/mark\n');
      expect(await lineOf(adopted!.stdio!.output)).toBe('"here"');
      await adopted!.stop(5_000);
      expect(await made.running()).toEqual([]);
    },
  );

  it('ends its containers when it does not keep them, which is no crash, and leaves nothing behind', async ({
    skip,
  }) => {
    await using engine = await OwnEngine.start({ skip });
    await using made = await dockerDriver(engine, 'docker');
    const spec = made.spec('runs-commands');
    const instance = await made.driver.start(spec, ignoreLog, never);
    await engine.stop();
    expect(await instance.exited).toMatchObject({ isLost: true });
    await engine.start();
    expect(await made.running()).toEqual([instance.id]);
    expect(await made.driver.survivors.adopt(spec, ignoreLog)).toBe(undefined);
    expect(await made.running()).toEqual([]);
  });
});

describe.concurrent('a Docker engine that cannot be used', () => {
  it('is reported with the missing socket and the setting for another', async () => {
    const driver = driverOf('docker', undefined, '/nowhere/docker.sock');
    expect(await driver.unavailable()).toBe(
      'The Docker engine at /nowhere/docker.sock cannot be reached: the socket does not exist. Start Docker (sudo systemctl start docker), or set its address with DOCKER_HOST or the setting `hosting.engine`.',
    );
  });

  it('is rejected when it is on another machine', async () => {
    const driver = driverOf('docker', undefined, 'ssh://user@machine');
    expect(await driver.unavailable()).toContain('must run on this machine');
  });

  it('is given up when it does not respond', async ({ skip }) => {
    const { socketPath } = await sharedEngine({ skip });
    const path = join(dirname(socketPath), `silent-${process.pid}.sock`);
    const silent = createServer().listen(path);
    await once(silent, 'listening');
    onTestFinished(() => void silent.close());
    const driver = driverOf('docker', undefined, `unix://${path}`);
    expect(await driver.unavailable()).toContain('no response within 5 s');
  });

  it('is reported with what to install for gVisor', async ({ skip }) => {
    const { socketPath } = await sharedEngine({ skip });
    const driver = driverOf('gvisor', 'runsc-of-another-name', socketPath);
    expect(await driver.unavailable()).toMatch(/has no runtime "runsc-of-another-name".*runsc install/);
    expect(await driverOf('gvisor', 'runsc', socketPath).unavailable()).toBe(undefined);
  });

  it('does not count as a sandbox with plain containers only', async ({ skip }) => {
    const { socketPath } = await sharedEngine({ skip });
    const driver = driverOf('gvisor', 'runc', socketPath);
    expect(await driver.unavailable()).toContain('does not isolate more than plain containers');
    await using made = await dockerDriver({ socketPath }, 'docker');
    await expect(driver.start(made.spec('runs-commands'), ignoreLog, never)).rejects.toThrow(
      /does not isolate more/,
    );
  });

  it('is reported with what to install for Firecracker', async ({ skip }) => {
    const { socketPath } = await sharedEngine({ skip });
    expect(await driverOf('firecracker', undefined, socketPath).unavailable()).toMatch(
      /has no runtime for Kata Containers with Firecracker.*hosting.runtimes.firecracker/,
    );
  });
});

describe.concurrent.for(dockerProviders)('a container of %s that cannot be started', (provider) => {
  it('is reported without its secrets', async ({ skip }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), provider);
    const spec = made.spec('runs-commands', { environment: { '': 'very secret' }, volumes: ['/data'] });
    const refused: Error = await made.driver.start(spec, ignoreLog, never).then(
      () => expect.unreachable(),
      (error: Error) => error,
    );
    expect(refused.message).toMatch(/Cannot start the container .*environment.*\*\*\*/);
    expect(JSON.stringify(refused, Object.getOwnPropertyNames(refused))).not.toContain('very secret');
    expect(refused.cause).toBe(undefined);
    expect(await made.volumes()).toEqual([]);
  });

  it('is reported with the missing program', async ({ skip }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), provider);
    const log = new Inbox<string>();
    const spec = { ...made.spec('runs-commands'), command: '/usr/bin/nothing' };
    const instance = await made.driver.start(spec, { log: (line) => log.add(line) }, never);
    expect(await instance.exited).toMatchObject({ code: 127, isLost: false });
    expect(log.items.join('\n')).toContain('/usr/bin/nothing');
  });

  it('is reported with the missing image', async ({ skip }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), provider);
    const spec = { ...made.spec('runs-commands'), image: undefined };
    await expect(made.driver.start(spec, ignoreLog, never)).rejects.toMatchObject({ code: 'invalid_config' });
  });
});

describe.concurrent.for(dockerProviders)('a container of %s', (provider) => {
  it('is adopted again after its connection breaks', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, provider);
    await using proxy = await CuttingProxy.listen(engine);
    const { owner } = made;
    const runtime = provider === 'gvisor' ? 'runsc' : undefined;
    const driver = new DockerDriver({
      ...{ provider, runtime, owner, engine: proxy.address, volumeImages: true },
    });
    const spec = made.spec('runs-commands');
    const instance = await driver.start(spec, ignoreLog, never);
    proxy.cut('stdin=1');
    expect(await instance.exited).toMatchObject({ isLost: true });
    const adopted = await driver.survivors.adopt(spec, ignoreLog);
    expect(adopted?.id).toBe(instance.id);

    // A break of the other connection goes unnoticed.
    proxy.cut('/wait');
    adopted!.stdio!.input.write('echo still here\n');
    expect(await lineOf(adopted!.stdio!.output)).toBe('still here');
    adopted!.stdio!.input.write('exit 6\n');
    expect(await adopted!.exited).toMatchObject({ code: 6, isLost: false });
  });

  it('is reported as killed after it is removed from outside', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, provider);
    const instance = await made.driver.start(made.spec('runs-commands'), ignoreLog, never);
    await dockerRequest(engine.socketPath, 'DELETE', `/containers/${instance.id}?force=1`);
    expect(await instance.exited).toMatchObject({ signal: 'SIGKILL', isLost: false });
    await expect(instance.usage()).rejects.toThrow();
    await instance.stop(1_000);
  });

  it('never runs twice', async ({ skip }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), provider);
    const spec = made.spec('runs-commands');
    const first = await made.driver.start(spec, ignoreLog, never);
    const second = await made.again().start(spec, ignoreLog, never);
    expect(await first.exited).toMatchObject({ isLost: false });
    expect(await made.running()).toEqual([second.id]);
    await second.stop(0);
  });

  it('replaces a duplicate of itself', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, provider);
    const spec = made.spec('runs-commands');
    const instance = await made.driver.start(spec, ignoreLog, never);
    const path = `/containers/${instance.id}/json`;
    const { Config } = await dockerRequest<{ Config: object }>(engine.socketPath, 'GET', path);
    const double = await dockerRequest<{ Id: string }>(
      engine.socketPath,
      'POST',
      '/containers/create',
      Config,
    );
    expect(await made.running()).toHaveLength(2);
    expect(await made.again().survivors.reap([spec.id])).toEqual([double.Id]);
    expect(await made.running()).toEqual([instance.id]);
    await instance.stop(0);
  });

  it('delivers all of its output to a late reader too', async ({ skip }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), provider);
    const spec = made.script("process.stdout.write('x'.repeat(400_000)); process.exitCode = 5");
    const instance = await made.driver.start(spec, ignoreLog, never);
    expect(await instance.exited).toMatchObject({ code: 5 });
    let length = 0;
    for await (const chunk of instance.stdio!.output) length += (chunk as Buffer).length;
    expect(length).toBe(400_000);
  });
});

function driverOf(
  provider: 'docker' | 'gvisor' | 'firecracker',
  runtime: string | undefined,
  engine: string,
) {
  return new DockerDriver({ provider, runtime, engine, owner: 'test', volumeImages: true });
}

async function lineOf(output: NodeJS.ReadableStream): Promise<string> {
  const [chunk] = (await once(output, 'data')) as [Buffer];
  return chunk.toString().trimEnd();
}

class CuttingProxy implements AsyncDisposable {
  readonly address: string;
  private readonly server: Server;
  private readonly connections: { request: string; socket: Socket }[] = [];

  private constructor(server: Server) {
    this.server = server;
    this.address = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async listen(engine: Engine): Promise<CuttingProxy> {
    const server = createServer((socket) => proxy.connect(socket, engine)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new CuttingProxy(server);
    return proxy;
  }

  /** Cuts the connections with this word in the request line. */
  cut(word: string): void {
    const found = this.connections.filter(
      ({ request, socket }) => request.includes(word) && !socket.destroyed,
    );
    expect(found).toHaveLength(1);
    for (const { socket } of found) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    for (const { socket } of this.connections) socket.destroy();
    await closed;
  }

  private connect(socket: Socket, engine: Engine): void {
    const onward = connect(engine.socketPath);
    socket.once('data', (chunk: Buffer) => {
      this.connections.push({ request: chunk.toString('latin1').split('\r\n')[0]!, socket });
    });
    socket.pipe(onward).pipe(socket);
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      one.on('error', () => {});
      one.on('close', () => other.destroy());
    }
  }
}

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { Instance, InstanceSpec } from '../../src/hosting/driver.ts';
import { dockerRequest, sharedEngine } from '../helpers/docker.ts';
import { Inbox } from '../helpers/inbox.ts';
import { type DockerUnderTest, dockerDriver, dockerProviders } from './docker-driver.ts';

const MEGABYTE = 1024 * 1024;

describe.concurrent.for(dockerProviders)('a container of the provider %s', (provider) => {
  it('has only the rights that it needs, as the engine reports them', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, provider);
    const limits = { cpus: 0.5, memoryBytes: 256 * MEGABYTE, diskBytes: 1024 * MEGABYTE, pids: 100 };
    const spec = made.spec('runs-commands', {
      limits,
      volumes: ['/data'],
      environment: { KEY: 'very secret' },
    });
    await using probe = await start(made, spec);
    const { Config, HostConfig, Mounts, Name, State, ...rest } = await dockerRequest<
      Record<string, Record<string, unknown>>
    >(engine.socketPath, 'GET', `/containers/${probe.instance.id}/json`);
    expect(HostConfig).toMatchObject({
      Runtime: provider === 'gvisor' ? 'runsc' : 'runc',
      NanoCpus: 500_000_000,
      Memory: 256 * MEGABYTE,
      MemorySwap: 256 * MEGABYTE,
      PidsLimit: provider === 'gvisor' ? 656 : 100,
      CapAdd: null,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
      ReadonlyRootfs: true,
      NetworkMode: 'none',
      Binds: null,
      LogConfig: { Type: 'none' },
      AutoRemove: false,
    });
    expect(Mounts).toMatchObject([{ Type: 'volume', Name: (await made.volumes())[0], Destination: '/data' }]);
    expect(Name).toMatch(/^\/switchboard-test-probe-/);
    expect(Config!.Labels).toMatchObject({
      'dev.switchboard.owner': made.owner,
      'dev.switchboard.provider': provider,
      'dev.switchboard.id': spec.id,
      'dev.switchboard.name': spec.name,
      'dev.switchboard.project': spec.project,
    });
    expect(Config!.Env).toContain('KEY=very secret');
    const visible = { ...rest, HostConfig, Mounts, Name, State, ...Config, Env: undefined };
    expect(JSON.stringify(visible)).not.toContain('very secret');
  });

  it('has a read-only root, a small /tmp and no network', async ({ skip }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), provider);
    await using probe = await start(made, made.script(lookAround));
    expect(JSON.parse(await probe.log.first((line) => line.startsWith('{')))).toEqual({
      root: 'EROFS',
      tmp: 'written',
      interfaces: [],
      outside: expect.stringMatching(/ENETUNREACH|EHOSTUNREACH|EINVAL/),
      capabilities: '0000000000000000',
      processes: expect.not.stringContaining('vitest'),
    });
  });

  it('can write to its root if that is requested', async ({ skip }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), provider);
    await using probe = await start(made, made.script(lookAround, { hasWritableRoot: true }));
    expect(JSON.parse(await probe.log.first((line) => line.startsWith('{')))).toMatchObject({
      root: 'written',
      tmp: 'written',
    });
  });

  it('is killed at its memory limit', async ({ skip }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), provider);
    const limits = { cpus: 1, memoryBytes: 128 * MEGABYTE, diskBytes: 1024 * MEGABYTE, pids: 128 };
    const hog = 'const kept = []; setInterval(() => kept.push(Buffer.alloc(8 << 20, 1)), 10)';
    await using probe = await start(made, made.script(hog, { limits }));
    // The exit has a code if the kernel kills another process of gVisor.
    const { code, signal, ...exit } = await probe.instance.exited;
    expect(signal ?? code).toBe(signal === undefined && provider === 'gvisor' ? 2 : 'SIGKILL');
    expect(exit).toEqual({
      reason: expect.stringMatching(/used more than its 128 MB of memory$/),
      isLost: false,
    });
    expect(await made.running()).toEqual([]);
  });

  it.for(['its root', 'a volume'])('is stopped at its disk limit on %s', async (place, { skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, provider, { volumeImages: false });
    const limits = { cpus: 1, memoryBytes: 256 * MEGABYTE, diskBytes: 16 * MEGABYTE, pids: 128 };
    const isRoot = place === 'its root';
    const folder = isRoot ? '/srv' : '/data';
    const hog = `
      for (let i = 0; i < 3; i++) fs.writeFileSync('${folder}/' + i, Buffer.alloc(8 << 20));
      setInterval(() => {}, 60_000)`;
    const spec = made.script(hog, {
      limits,
      ...(isRoot ? { hasWritableRoot: true } : { volumes: ['/data'] }),
    });
    await using probe = await start(made, spec);
    expect(await probe.instance.exited).toMatchObject({
      reason: 'used more than its 16 MB of disk',
      isLost: false,
    });
    expect(await made.running()).toEqual([]);
    if (isRoot) return;
    await expect(start(made, spec)).rejects.toMatchObject({
      code: 'invalid_config',
      // The amount written to the last file depends on when it is measured.
      message: expect.stringMatching(
        /hold (1[6-9]|2[0-4])(\.\d)? MB, more than its disk limit of 16 MB. Raise the limit/,
      ),
    });
    expect(await made.running()).toEqual([]);
  });

  it('[H16] writes hardly more than its disk limit to volumes that are only measured', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, provider, { volumeImages: false });
    const limits = { cpus: 1, memoryBytes: 256 * MEGABYTE, diskBytes: 256 * MEGABYTE, pids: 128 };
    const writer = `
      process.on('SIGTERM', () => {});
      let i = 0;
      const write = () => fs.writeFileSync('/data/' + i++, Buffer.alloc(8 << 20, 1));
      while (i < 31) write();
      // Measuring and stopping may take three of these.
      const timer = setInterval(() => {
        write();
        if (i === 60) clearInterval(timer);
      }, 4_000);
      setInterval(() => {}, 60_000)`;
    const spec = made.script(writer, { limits, volumes: ['/data'] });
    await using probe = await start(made, spec);
    expect(await probe.instance.exited).toMatchObject({ reason: 'used more than its 256 MB of disk' });
    const refused: unknown = await start(made, spec).catch((error: unknown) => error);
    const [, held] =
      /hold ([\d.]+) MB, more than its disk limit of 256 MB/.exec((refused as Error).message) ?? [];
    expect(Number(held)).toBeGreaterThan(256);
    expect(Number(held)).toBeLessThanOrEqual(1.1 * 256);
  });

  it('is published on loopback only', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, provider);
    await using probe = await start(made, made.spec('runs-commands', { port: 8080, args: ['listen'] }));
    await probe.log.first((line) => line === 'listening');
    const { NetworkSettings } = await dockerRequest<{
      NetworkSettings: { Ports: Record<string, { HostIp: string; HostPort: string }[]> };
    }>(engine.socketPath, 'GET', `/containers/${probe.instance.id}/json`);
    const published = NetworkSettings.Ports['8080/tcp']!;
    expect(published.map(({ HostIp }) => HostIp)).toEqual(['127.0.0.1']);
    expect(probe.instance.url).toBe(`http://127.0.0.1:${published[0]!.HostPort}`);
    expect(await (await fetch(probe.instance.url!)).text()).toBe('served /');
  });

  it('[H2] is reported when its requested port is taken, and otherwise gets a free one', async ({ skip }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), provider);
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port: hostPort } = taken.address() as AddressInfo;
    const serving = { port: 8080, args: ['listen'] };
    await expect(start(made, made.spec('runs-commands', { ...serving, hostPort }))).rejects.toMatchObject({
      code: 'server_start_failed',
      message: expect.stringMatching(`Port ${hostPort} of this machine is in use`),
    });
    await using probe = await start(
      made,
      made.spec('runs-commands', { ...serving, formerHostPort: hostPort }),
    );
    taken.close();
    await probe.log.first((line) => line === 'listening');
    expect(await (await fetch(probe.instance.url!)).text()).toBe('served /');
  });

  // Only the test's own `expect` polls in a concurrent test.
  it('reports its disk usage', async ({ skip, expect }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), provider);
    const write = "fs.writeFileSync('/data/some', Buffer.alloc(4 << 20)); console.error('written')";
    const spec = made.script(`${write}; setInterval(() => {}, 60_000)`, { volumes: ['/data'] });
    await using first = await start(made, spec);
    await first.log.first((line) => line === 'written');
    await first.instance.stop(0);
    await using second = await start(made, spec);
    await second.log.first((line) => line === 'written');
    await expect
      .poll(async () => (await second.instance.usage()).diskBytes)
      .toBeGreaterThanOrEqual(4 * MEGABYTE);
    await using without = await start(made, made.spec('runs-commands'));
    expect((await without.instance.usage()).diskBytes).toBe(0);
  });
});

const lookAround = `
  const write = (path) => { try { fs.writeFileSync(path, 'x'); return 'written' } catch (error) { return error.code } };
  const capabilities = fs.readFileSync('/proc/self/status', 'utf8').match(/CapEff:\\s*(\\w+)/)[1];
  const processes = fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name))
    .map((pid) => { try { return fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8') } catch { return '' } }).join();
  const interfaces = Object.keys(os.networkInterfaces()).filter((name) => name !== 'lo');
  const tell = (outside) => console.error(JSON.stringify(
    { root: write('/srv/x'), tmp: write('/tmp/x'), interfaces, outside, capabilities, processes }));
  net.connect(53, '198.18.0.1').on('error', (error) => tell(error.code)).on('connect', () => tell('connected'));
  setInterval(() => {}, 60_000)`;

async function start({ driver }: DockerUnderTest, spec: InstanceSpec) {
  const log = new Inbox<string>();
  const events = { log: (line: string) => log.add(line) };
  const instance: Instance = await driver.start(spec, events, new AbortController().signal);
  return { instance, log, [Symbol.asyncDispose]: () => instance.stop(0) };
}

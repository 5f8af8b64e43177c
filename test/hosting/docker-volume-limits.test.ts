import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Instance, InstanceSpec } from '../../src/hosting/driver.ts';
import { dockerRequest, type Engine, sharedEngine } from '../helpers/docker.ts';
import { loopDevicesBelow, mountsAt, volumeFolder } from '../helpers/docker-volumes.ts';
import { Inbox } from '../helpers/inbox.ts';
import { type DockerUnderTest, dockerDriver, dockerProviders } from './docker-driver.ts';

const MEGABYTE = 1024 * 1024;
const limits = { cpus: 1, memoryBytes: 256 * MEGABYTE, diskBytes: 16 * MEGABYTE, pids: 128 };
const volumes = ['/data'];

/** Fills /data with files of 1 MB, at most 64, reports the result, and keeps running. */
const filler = `
  const before = fs.readdirSync('/data');
  const { mode } = fs.statSync('/data');
  let code, written = 0;
  while (code === undefined && before.length + written < 64) {
    const path = '/data/' + (before.length + written);
    try {
      fs.writeFileSync(path, Buffer.alloc(1 << 20, 1));
      written++;
    } catch (error) {
      fs.rmSync(path, { force: true });
      code = error.code;
    }
  }
  const { blocks, bsize } = fs.statfsSync('/data');
  const report = { before: before.length, mode: mode & 0o7777, code, written, size: blocks * bsize };
  console.error(JSON.stringify(report));
  setInterval(() => console.error('goes on'), 100)`;

interface Report {
  before: number;
  mode: number;
  code: string | undefined;
  written: number;
  size: number;
}

describe.concurrent.for(dockerProviders)('a volume of a container of the provider %s', (provider) => {
  // Only the test's own `expect` polls in a concurrent test.
  it('[H16] rejects writes over the disk limit while the server keeps running', async ({ skip, expect }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), provider);
    await using probe = await start(made, made.script(filler, { limits, volumes }));
    const report = await probe.report();
    expect(report).toMatchObject({ before: 0, mode: 0o1777, code: 'ENOSPC' });
    expect(report.written).toBeGreaterThanOrEqual(12);
    expect(report.written).toBeLessThan(16);
    expect(report.size).toBeGreaterThan(0.8 * limits.diskBytes);
    expect(report.size).toBeLessThanOrEqual(limits.diskBytes);
    await expect
      .poll(async () => (await probe.instance.usage()).diskBytes)
      .toBeGreaterThanOrEqual(report.written * MEGABYTE);
    probe.log.items.length = 0;
    await probe.log.first((line) => line === 'goes on');
    expect(await made.running()).toEqual([probe.instance.id]);
  });

  it('[H16] keeps its data after a reboot, and grows with the limit', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, provider);
    const spec = made.script(filler, { limits, volumes });
    const { written } = await runOnce(made, spec);
    const folder = await onlyFolder(engine, made);
    // A reboot unmounts it.
    execFileSync('umount', [folder]);
    expect(await runOnce(made, spec)).toMatchObject({ before: written, code: 'ENOSPC', written: 0 });
    expect(mountsAt(folder)).toBe(1);

    const raised = { ...spec, limits: { ...limits, diskBytes: 32 * MEGABYTE } };
    const more = await runOnce(made, raised);
    expect(more).toMatchObject({ before: written, code: 'ENOSPC' });
    expect(more.written).toBeGreaterThanOrEqual(14);
    expect(more.size).toBeLessThanOrEqual(raised.limits.diskBytes);
    expect(readdirSync(folder)).not.toContain('lost+found');
    // The volume never shrinks, and its data exceeds the lower limit.
    await expect(start(made, spec)).rejects.toThrow('disk limit of 16 MB');
  });

  it('is removed with its mount and its loop device', async ({ skip, expect }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, provider);
    const spec = made.script(filler, { limits, volumes: ['/data', '/more'] });
    await runOnce(made, spec);
    const names = await made.volumes();
    const folders = await Promise.all(names.map((name) => volumeFolder(engine, name)));
    expect(folders.map(mountsAt)).toEqual([1, 1]);
    expect(folders.flatMap((folder) => loopDevicesBelow(dirname(folder)))).toHaveLength(2);
    expect((await made.driver.volumes.remove(spec)).toSorted()).toEqual(names.toSorted());
    expect(folders.map(mountsAt)).toEqual([0, 0]);
    // The kernel releases the mounts of an ended container with a delay.
    await expect.poll(() => folders.flatMap((folder) => loopDevicesBelow(dirname(folder)))).toEqual([]);
    expect(folders.map((folder) => existsSync(dirname(folder)))).toEqual([false, false]);
  });

  it('stays unchanged while it is in use', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, provider);
    const spec = made.script(filler, { limits, volumes });
    await using probe = await start(made, spec);
    const { written } = await probe.report();
    await expect(made.driver.volumes.remove(spec)).rejects.toMatchObject({ code: 'conflict' });
    const folder = await onlyFolder(engine, made);
    expect(mountsAt(folder)).toBe(1);
    expect(loopDevicesBelow(dirname(folder))).toHaveLength(1);
    expect(readdirSync(folder)).toHaveLength(written);
  });

  it('is mounted again for an adopted container', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, provider);
    const spec = made.script(filler, { limits, volumes });
    const first = await start(made, spec);
    const { written } = await first.report();
    first.instance.release!();
    const folder = await onlyFolder(engine, made);
    execFileSync('umount', [folder]);
    const adopted = await made.again().survivors.adopt(spec, { log() {} });
    expect(adopted?.id).toBe(first.instance.id);
    expect(readdirSync(folder)).toHaveLength(written);
    expect(loopDevicesBelow(dirname(folder))).toHaveLength(1);
    await adopted!.stop(0);
  });
});

describe.concurrent('a volume in a disk image', () => {
  it('is created again if its creation was interrupted', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, 'docker');
    const spec = made.script(filler, { limits, volumes });
    await runOnce(made, spec);
    const folder = await onlyFolder(engine, made);
    const image = imageIn(folder);
    execFileSync('umount', [folder]);
    execFileSync('mv', [image, `${image}.unfinished`]);
    truncateSync(`${image}.unfinished`, MEGABYTE);
    expect(await runOnce(made, spec)).toMatchObject({ before: 0, mode: 0o1777, code: 'ENOSPC' });
    expect(readdirSync(dirname(folder)).toSorted()).toEqual(['_data', 'switchboard.ext4']);
  });

  it('prevents a start without its data', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, 'docker');
    const spec = made.script(filler, { limits, volumes });
    await runOnce(made, spec);
    const folder = await onlyFolder(engine, made);
    execFileSync('umount', [folder]);
    writeFileSync(imageIn(folder), Buffer.alloc(limits.diskBytes));
    await expect(start(made, spec)).rejects.toMatchObject({
      code: 'server_start_failed',
      message: expect.stringMatching(/Cannot mount the volume .* at .*_data, .* mount failed: /),
    });
    expect(readdirSync(folder)).toEqual([]);
    expect(await made.volumes()).toHaveLength(1);
  });

  it('grows at the next start while another container uses it', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, 'docker');
    const spec = made.script(filler, { limits, volumes });
    const { written } = await runOnce(made, spec);
    const [name] = await made.volumes();
    const { Id: other } = await dockerRequest<{ Id: string }>(
      engine.socketPath,
      'POST',
      '/containers/create',
      {
        Image: spec.image,
        Entrypoint: ['/usr/bin/node', '-e', 'setInterval(() => {}, 60_000)'],
        HostConfig: { Binds: [`${name}:/data`], NetworkMode: 'none' },
      },
    );
    const raised = { ...spec, limits: { ...limits, diskBytes: 32 * MEGABYTE } };
    try {
      await dockerRequest(engine.socketPath, 'POST', `/containers/${other}/start`);
      await using probe = await start(made, raised);
      expect(await probe.report()).toMatchObject({ before: written, code: 'ENOSPC', written: 0 });
      expect(probe.log.items.join('\n')).toContain(' to 32 MB: another container uses it');
    } finally {
      await dockerRequest(engine.socketPath, 'DELETE', `/containers/${other}?force=1`);
    }
    expect((await runOnce(made, raised)).written).toBeGreaterThanOrEqual(14);
  });

  it('falls back to a plain volume if the image cannot be created, and logs why', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, 'docker');
    const tiny = { ...limits, diskBytes: 16 * 1024 };
    const spec = made.script('setInterval(() => {}, 60_000)', { limits: tiny, volumes });
    await using probe = await start(made, spec);
    expect(probe.log.items.join('\n')).toMatch(
      /The size of the volume at \/data is measured but not limited: mkfs.ext4 failed: /,
    );
    const folder = await onlyFolder(engine, made);
    expect(mountsAt(folder)).toBe(0);
    expect(readdirSync(dirname(folder))).toEqual(['_data']);
  });
});

async function start({ driver }: DockerUnderTest, spec: InstanceSpec) {
  const log = new Inbox<string>();
  const events = { log: (line: string) => log.add(line) };
  const instance: Instance = await driver.start(spec, events, new AbortController().signal);
  const report = async () => JSON.parse(await log.first((line) => line.startsWith('{'))) as Report;
  return { instance, log, report, [Symbol.asyncDispose]: () => instance.stop(0) };
}

async function runOnce(made: DockerUnderTest, spec: InstanceSpec): Promise<Report> {
  await using probe = await start(made, spec);
  return await probe.report();
}

async function onlyFolder(engine: Engine, made: DockerUnderTest): Promise<string> {
  const names = await made.volumes();
  expect(names).toHaveLength(1);
  return volumeFolder(engine, names[0]!);
}

function imageIn(folder: string): string {
  return join(dirname(folder), 'switchboard.ext4');
}

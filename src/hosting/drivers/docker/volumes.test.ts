import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../driver.ts';
import { Engine } from './engine.ts';
import { DockerVolumes, volumeMount } from './volumes.ts';

const spec: InstanceSpec = {
  ...{ id: 'id', name: 'notes', project: 'default', image: 'mcp/notes', command: undefined, args: [] },
  ...{ environment: {}, hasStdio: true, port: undefined, hasNetwork: false, hasWritableRoot: false },
  limits: { cpus: 0.5, memoryBytes: 2 ** 29, diskBytes: 2 ** 30, pids: 128 },
  volumes: ['/data', '/more'],
};
const mounts = spec.volumes.map((path) => volumeMount('here', spec, path));

describe('the volumes of an engine', () => {
  let folder: string;
  let engine: Server;
  let asked: { Name: string; DriverOpts?: object; Labels: object }[];
  let there: object[];
  let refusal: { status: number; message: string } | undefined;
  let volumes: DockerVolumes;
  const log: string[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
    [asked, there, refusal] = [[], [], undefined];
    log.length = 0;
    engine = createServer(async (request, response) => {
      if (request.method === 'GET') return void response.end(JSON.stringify({ Volumes: there }));
      asked.push((await json(request)) as (typeof asked)[number]);
      response.statusCode = refusal?.status ?? 201;
      response.end(JSON.stringify(refusal ?? { Mountpoint: '/nowhere' }));
    });
    const socketPath = join(folder, 'engine.sock');
    await new Promise<void>((resolve) => engine.listen(socketPath, resolve));
    volumes = new DockerVolumes({ engine: new Engine(socketPath), owner: 'here', hasImages: false });
  });
  afterEach(async () => {
    engine.close();
    await rm(folder, { recursive: true });
  });

  const provide = () => volumes.provide(mounts, spec, (line) => log.push(line));

  it('are created with the whole limit as quota each', async () => {
    await provide();
    expect(asked).toEqual(
      mounts.map(({ Source, VolumeOptions: { Labels } }) => ({
        Name: Source,
        Labels,
        DriverOpts: { size: String(2 ** 30) },
      })),
    );
  });

  it('are left to the engine if it has no quotas, which is checked once', async () => {
    refusal = { status: 400, message: 'quota size requested but no quota support' };
    await provide();
    await provide();
    expect(asked).toHaveLength(1);
    expect(log).toEqual([]);
  });

  it('fail if the engine rejects them for another reason', async () => {
    refusal = { status: 500, message: 'no space left on device' };
    await expect(provide()).rejects.toThrow('no space left');
  });

  it('keep their original quota, and the log says so', async () => {
    there = mounts.map(({ Source }) => ({ Name: Source, Labels: {}, Options: { size: String(2 ** 29) } }));
    await provide();
    expect(asked).toEqual([]);
    expect(log).toEqual(
      mounts.map(({ Source }) => `The volume ${Source} keeps its original quota of 512 MB.`),
    );
  });

  it('from earlier versions, without a quota, stay unchanged', async () => {
    there = mounts.map(({ Source }) => ({ Name: Source, Labels: {}, Options: null }));
    await provide();
    expect([asked, log]).toEqual([[], []]);
  });
});

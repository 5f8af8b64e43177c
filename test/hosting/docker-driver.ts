import { randomUUID } from 'node:crypto';
import { DockerDriver } from '../../src/hosting/drivers/docker/driver.ts';
import { dockerRequest, type Engine } from '../helpers/docker.ts';
import { removeVolume } from '../helpers/docker-volumes.ts';
import { serverImage } from '../helpers/images.ts';
import { type DriverUnderTest, specOf } from './contract.ts';

export type DockerProvider = 'gvisor' | 'docker';

export const dockerProviders: DockerProvider[] = ['gvisor', 'docker'];

export interface DockerUnderTest extends DriverUnderTest {
  driver: DockerDriver;
  again(): DockerDriver;
  /** Runs a Node script instead of a fixture. */
  script(code: string, more?: Parameters<typeof specOf>[0]): ReturnType<typeof specOf>;
  volumes(): Promise<string[]>;
  owner: string;
}

/** A driver with its own owner label. Whatever it leaves behind is removed at the end and reported. */
export async function dockerDriver(
  engine: Engine,
  provider: DockerProvider,
  { volumeImages = true } = {},
): Promise<DockerUnderTest> {
  const { socketPath } = engine;
  const image = await serverImage(engine, 'runs-commands');
  const owner = `test-${randomUUID()}`;
  const runtime = provider === 'gvisor' ? 'runsc' : undefined;
  const make = () => new DockerDriver({ provider, runtime, owner, engine: socketPath, volumeImages });
  const filters = JSON.stringify({ label: [`dev.switchboard.owner=${owner}`] });

  const running = async () => {
    const path = `/containers/json?${new URLSearchParams({ all: '1', filters })}`;
    return (await dockerRequest<{ Id: string }[]>(socketPath, 'GET', path)).map(({ Id }) => Id);
  };
  const volumes = async () => {
    const path = `/volumes?${new URLSearchParams({ filters })}`;
    const found = await dockerRequest<{ Volumes: { Name: string }[] | null }>(socketPath, 'GET', path);
    return (found.Volumes ?? []).map(({ Name }) => Name);
  };

  return {
    driver: make(),
    again: make,
    spec: (_fixture, more = {}) => specOf({ image, ...more }),
    script: (code, more = {}) => specOf({ image, command: '/usr/bin/node', args: ['-e', code], ...more }),
    running,
    volumes,
    owner,
    async [Symbol.asyncDispose]() {
      const left = await running();
      for (const id of left) await dockerRequest(socketPath, 'DELETE', `/containers/${id}?force=1&v=1`);
      for (const name of await volumes()) await removeVolume(engine, name);
      if (left.length > 0) throw new Error(`There was still a container: ${left.join(', ')}`);
    },
  };
}

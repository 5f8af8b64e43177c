import { randomUUID } from 'node:crypto';
import { describe, expect } from 'vitest';
import { DockerDriver } from '../../src/hosting/drivers/docker.ts';
import { dockerRequest, sharedEngine } from '../helpers/docker.ts';
import { serverImage } from '../helpers/images.ts';
import { driverContract, type MakeDriver, specOf } from './contract.ts';

describe.concurrent.for([
  { provider: 'gvisor', runtime: 'runsc' },
  { provider: 'docker', runtime: undefined },
] as const)('with a real engine', ({ provider, runtime }) => {
  driverContract(provider, makeDriver(provider, runtime), { hasSurvivors: true, hasVolumes: true });
});

function makeDriver(provider: 'gvisor' | 'docker', runtime: string | undefined): MakeDriver {
  return async (test) => {
    const engine = await sharedEngine(test);
    const image = await serverImage(engine, 'hosted-probe');
    const owner = `test-${randomUUID()}`;
    const make = () => new DockerDriver({ provider, runtime, owner, engine: engine.socketPath });
    const filters = JSON.stringify({ label: [`dev.switchboard.owner=${owner}`] });
    const running = async () => {
      const path = `/containers/json?${new URLSearchParams({ all: '1', filters })}`;
      return (await dockerRequest<{ Id: string }[]>(engine.socketPath, 'GET', path)).map(({ Id }) => Id);
    };
    return {
      driver: make(),
      again: make,
      spec: (_fixture, more = {}) => specOf({ image, ...more }),
      running,
      async [Symbol.asyncDispose]() {
        const path = `/volumes?${new URLSearchParams({ filters })}`;
        const { Volumes } = await dockerRequest<{ Volumes: { Name: string }[] | null }>(
          engine.socketPath,
          'GET',
          path,
        );
        for (const { Name } of Volumes ?? [])
          await dockerRequest(engine.socketPath, 'DELETE', `/volumes/${Name}`);
        expect(await running()).toEqual([]);
      },
    };
  };
}

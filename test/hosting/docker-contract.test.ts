import { describe } from 'vitest';
import { sharedEngine } from '../helpers/docker.ts';
import { driverContract } from './contract.ts';
import { dockerDriver, dockerProviders } from './docker-driver.ts';

describe.concurrent.for(dockerProviders)('with a real engine', (provider) => {
  driverContract(provider, async (test) => dockerDriver(await sharedEngine(test), provider), {
    hasSurvivors: true,
    hasVolumes: true,
  });
});

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, vi } from 'vitest';
import { E2bDriver } from '../../src/hosting/drivers/e2b/driver.ts';
import { driverContract } from './contract.ts';
import { E2bApi, sandboxed } from './e2b-api.ts';

let api: E2bApi;

beforeAll(async () => {
  api = await E2bApi.start();
  vi.stubEnv('E2B_API_URL', api.url);
  vi.stubEnv('E2B_SANDBOX_URL', api.url);
});

afterAll(async () => {
  vi.unstubAllEnvs();
  await api[Symbol.asyncDispose]();
});

driverContract(
  'e2b',
  async () => {
    const owner = randomUUID();
    const again = () => new E2bDriver({ apiKey: api.apiKey, domain: undefined, owner });
    const ours = () =>
      [...api.sandboxes.values()]
        .filter(({ wish }) => wish.metadata?.['dev.switchboard.owner'] === owner)
        .map(({ id }) => id);
    return {
      driver: again(),
      again,
      spec: sandboxed,
      running: async () => ours(),
      async [Symbol.asyncDispose]() {
        for (const id of ours()) await api.endSandbox(id);
      },
    };
  },
  { hasSurvivors: true, hasVolumes: false },
);

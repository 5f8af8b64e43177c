import { describe, expect, it } from 'vitest';
import { loadSdk, type Sdk } from './sdk.ts';

describe('the e2b package', () => {
  it('is loaded if it is installed', async () => {
    expect((await loadSdk()).Sandbox).toBeTypeOf('function');
  });

  it('is requested with install instructions if it is missing', async () => {
    const missing = 'e2b-that-nobody-installed';
    const load = () => import(missing) as Promise<Sdk>;
    await expect(loadSdk(load)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('run `npm install e2b`'),
    });
  });

  it('is requested again if it is broken', async () => {
    const broken = 'data:text/javascript,throw new Error("half of it is gone")';
    const load = () => import(broken) as Promise<Sdk>;
    await expect(loadSdk(load)).rejects.toThrow(
      /cannot be loaded: half of it is gone\. Run `npm install e2b`/,
    );
  });
});

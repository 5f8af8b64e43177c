import { describe, expect, it } from 'vitest';
import { loadSdk, type Sdk } from './sdk.ts';

describe('the package e2b', () => {
  it('is loaded where it is installed', async () => {
    expect((await loadSdk()).Sandbox).toBeTypeOf('function');
  });

  it('is asked for where it is missing', async () => {
    const missing = 'e2b-that-nobody-installed';
    const load = () => import(missing) as Promise<Sdk>;
    await expect(loadSdk(load)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('run `npm install e2b`'),
    });
  });

  it('is asked for again where it is broken', async () => {
    const broken = 'data:text/javascript,throw new Error("half of it is gone")';
    const load = () => import(broken) as Promise<Sdk>;
    await expect(loadSdk(load)).rejects.toThrow(
      /cannot be loaded: half of it is gone\. Run `npm install e2b`/,
    );
  });
});

import { describe, expect, it } from 'vitest';
import { loadSdk } from './sdk.ts';

describe('Anthropic’s SDK', () => {
  it('is asked for where it is missing', async () => {
    const missing = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    await expect(loadSdk(() => Promise.reject(missing))).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('which is not installed: run `npm install @anthropic-ai/sdk`'),
    });
  });

  it('is told of where it cannot be loaded', async () => {
    await expect(loadSdk(() => Promise.reject(new Error('half of it is missing')))).rejects.toThrow(
      'which cannot be loaded (half of it is missing)',
    );
  });
});

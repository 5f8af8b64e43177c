import { describe, expect, it } from 'vitest';
import { loadSdk } from './sdk.ts';

describe('the Anthropic SDK', () => {
  it('is requested with install instructions if it is missing', async () => {
    const missing = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    await expect(loadSdk(() => Promise.reject(missing))).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('which is not installed: run `npm install @anthropic-ai/sdk`'),
    });
  });

  it('reports why it cannot be loaded', async () => {
    await expect(loadSdk(() => Promise.reject(new Error('half of it is missing')))).rejects.toThrow(
      'which cannot be loaded (half of it is missing)',
    );
  });
});

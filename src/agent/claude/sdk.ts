import { SwitchboardError } from '../../errors.ts';

type Sdk = typeof import('@anthropic-ai/sdk');

/** Tests replace `load`. */
export async function loadSdk(load: () => Promise<Sdk> = () => import('@anthropic-ai/sdk')): Promise<Sdk> {
  try {
    return await load();
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND';
    const what = isMissing ? 'is not installed' : `cannot be loaded (${(error as Error).message})`;
    throw new SwitchboardError(
      'invalid_config',
      `Claude requires the package @anthropic-ai/sdk, which ${what}: run \`npm install @anthropic-ai/sdk\` where Switchboard is installed.`,
      { cause: error },
    );
  }
}

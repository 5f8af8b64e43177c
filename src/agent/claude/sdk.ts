import { SwitchboardError } from '../../errors.ts';

/** Anthropic's SDK, which only those have who use it. */
type Sdk = typeof import('@anthropic-ai/sdk');

/** `load` is for tests of what is said where the package is missing. */
export async function loadSdk(load: () => Promise<Sdk> = () => import('@anthropic-ai/sdk')): Promise<Sdk> {
  try {
    return await load();
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND';
    const what = isMissing ? 'is not installed' : `cannot be loaded (${(error as Error).message})`;
    throw new SwitchboardError(
      'invalid_config',
      `Claude needs the package @anthropic-ai/sdk, which ${what}: run \`npm install @anthropic-ai/sdk\` where Switchboard is installed.`,
      { cause: error },
    );
  }
}

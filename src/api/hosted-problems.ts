import type { HostedConfig } from './hosted-input.ts';
import type { Problem } from './problems.ts';

/** Where the parts of a hosted server do not fit each other. */
export function hostedProblems(config: HostedConfig): Problem[] {
  const { image, command, provider, stdio_bridge, port } = config;
  const problems: Problem[] = [];
  if (image === null && (command === null || (provider !== null && provider !== 'process'))) {
    problems.push({ path: ['image'], message: 'is missing: only the provider "process" does without one' });
  }
  if (provider === 'process' && command === null) {
    problems.push({ path: ['command'], message: 'is missing: the provider "process" runs no images' });
  }
  if (!stdio_bridge && port === null) {
    const message = 'is missing: without a stdio_bridge the server is reached over it';
    problems.push({ path: ['port'], message });
  }
  return problems;
}

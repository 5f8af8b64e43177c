import type { HostedConfig } from './hosted-input.ts';
import type { Problem } from './problems.ts';

/** Where the parts of a hosted server do not fit each other. */
export function hostedProblems({ stdio_bridge, port, host_port, ...config }: HostedConfig): Problem[] {
  const unreachable = !stdio_bridge && port === null;
  const message = 'is missing: without a stdio_bridge the server is reached over it';
  const isMapped = config.provider === 'process' && host_port !== null && host_port !== port;
  const unmapped = 'has another host port: a process listens on its port itself';
  return [
    ...whatToRun(config),
    ...(unreachable ? [{ path: ['port'], message }] : []),
    ...(isMapped ? [{ path: ['port'], message: unmapped }] : []),
  ];
}

function whatToRun({
  image,
  command,
  provider,
}: Pick<HostedConfig, 'image' | 'command' | 'provider'>): Problem[] {
  if (provider === 'process') {
    if (command !== null) return [];
    return [{ path: ['command'], message: 'is missing: the provider "process" runs no images' }];
  }
  // Without a provider it may still become a process, where that is allowed.
  if (image !== null || (command !== null && provider === null)) return [];
  return [{ path: ['image'], message: 'is missing: only the provider "process" does without one' }];
}

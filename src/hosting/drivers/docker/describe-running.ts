import type { InstanceSpec } from '../../driver.ts';
import type { Inspected } from './containers.ts';
import type { Running } from './instance.ts';

/** What the engine has made of a spec. */
export function describeRunning(
  id: string,
  { limits, port, hasWritableRoot }: InstanceSpec,
  { State, NetworkSettings, Mounts }: Inspected,
): Omit<Running, 'attached' | 'waiting'> {
  const published = port === undefined ? undefined : NetworkSettings.Ports?.[`${port}/tcp`]?.[0];
  const volumes = Mounts.flatMap(({ Type, Name }) => (Type === 'volume' && Name !== undefined ? [Name] : []));
  return {
    id,
    limits,
    startedAt: new Date(State.StartedAt),
    url: published === undefined ? undefined : `http://127.0.0.1:${published.HostPort}`,
    // Also those volumes that only its image asks for.
    disk: { root: hasWritableRoot ? id : undefined, volumes },
  };
}

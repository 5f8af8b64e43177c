import type { ChildRecord } from '../channels/stdio.ts';
import type { Provider } from '../config/choices.ts';
import type { HostingSettings } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { Driver } from './driver.ts';
import type { Former } from './server-state.ts';

export interface Drivers {
  get(provider: Provider): Promise<Driver>;
  /** Returns the best usable driver if none is requested. Rejects if there is none. */
  choose(requested: Provider | undefined, former?: Former): Promise<Driver>;
}

export interface DriversOptions extends HostingSettings {
  /** A socket path, unix://… or tcp://127.0.0.1:2375 */
  engine: string;
  home: string;
  /** Identifies this installation, so that it never touches instances of another one. */
  owner: string;
  children: ChildRecord;
  e2b: { apiKey?: string | undefined; domain?: string | undefined };
}

type Candidate = Pick<Driver, 'provider' | 'unavailable'>;

/** Lightest first, because servers run all the time. */
const isolating: readonly Provider[] = ['gvisor', 'firecracker', 'e2b'];
const lesser = ['docker', 'process'] as const;

export function createDrivers(options: DriversOptions): Drivers {
  const created = new Map<Provider, Promise<Driver>>();
  const get = (provider: Provider) => {
    const driver = created.get(provider) ?? factories[provider](options);
    created.set(provider, driver);
    return driver;
  };
  return { get, choose: (requested, former) => chooseDriver(requested, options.allow, get, former) };
}

/**
 * Never returns less isolation than requested or allowed. `former` is set if `requested` is only the provider that ran the server
 * before.
 */
export async function chooseDriver<Found extends Candidate>(
  requested: Provider | undefined,
  allow: HostingSettings['allow'],
  get: (provider: Provider) => Promise<Found>,
  former?: Former,
): Promise<Found> {
  const order =
    requested === undefined ? [...isolating, ...lesser.filter((each) => allow.includes(each))] : [requested];
  const reasons: [Provider, string][] = [];
  for (const provider of order) {
    const driver = await get(provider);
    const reason = await driver.unavailable();
    if (reason === undefined) return driver;
    reasons.push([provider, reason]);
  }
  const data = { providers: Object.fromEntries(reasons) };
  throw requested === undefined
    ? new SwitchboardError('no_isolation', describeNone(reasons), { data })
    : new SwitchboardError(
        'server_start_failed',
        `The provider "${requested}", which ${origin(former)}, cannot be used: ${reasons[0]![1]}`,
        { data },
      );
}

function origin(former: Former | undefined): string {
  if (former === undefined) return 'the server requires';
  return former.hasVolumes ? 'ran the server before and has its volumes' : 'ran the server before';
}

function describeNone(reasons: readonly [Provider, string][]): string {
  return [
    'No provider that isolates servers is available on this machine.',
    'Set up one of these:',
    ...reasons.map(([provider, reason]) => `  ${provider}: ${reason}`),
    'To run the server with less isolation, set its provider to "docker" or "process", or allow it for all servers in the configuration: "switchboard": {"hosting": {"allow": ["docker"]}}',
  ].join('\n');
}

/** Loaded on first use, because most installations use one. */
const factories: Record<Provider, (options: DriversOptions) => Promise<Driver>> = {
  gvisor: (options) => makeDocker('gvisor', options.runtimes.gvisor, options),
  firecracker: (options) => makeDocker('firecracker', options.runtimes.firecracker, options),
  async e2b({ e2b, owner }) {
    const { E2bDriver } = await import('./drivers/e2b/driver.ts');
    return new E2bDriver({ apiKey: e2b.apiKey, domain: e2b.domain, owner });
  },
  docker: (options) => makeDocker('docker', undefined, options),
  async process({ home, children }) {
    const { ProcessDriver } = await import('./drivers/process/driver.ts');
    return new ProcessDriver({ home, children });
  },
};

async function makeDocker(
  provider: 'gvisor' | 'firecracker' | 'docker',
  runtime: string | undefined,
  { engine, owner, volumeImages }: DriversOptions,
): Promise<Driver> {
  const { DockerDriver } = await import('./drivers/docker/driver.ts');
  return new DockerDriver({ provider, engine, runtime, owner, volumeImages });
}

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ProcessRecord } from '../channels/process-record.ts';
import { type Provider, providers } from '../config/choices.ts';
import type { HostingSettings } from '../config.ts';
import { asSwitchboardError, type SwitchboardError } from '../errors.ts';
import { chooseDriver, createDrivers, type DriversOptions } from './drivers.ts';

/** The choice if only these providers are usable. */
async function chosen(
  asked: Provider | undefined,
  usable: readonly Provider[],
  allow: HostingSettings['allow'] = [],
): Promise<Provider> {
  const candidates = providers.map((provider) => ({
    provider,
    unavailable: async () => (usable.includes(provider) ? undefined : `there is no ${provider}`),
  }));
  const found = await chooseDriver(
    asked,
    allow,
    async (wanted) => candidates.find((each) => each.provider === wanted)!,
  );
  return found.provider;
}

async function refusal(choice: Promise<unknown>): Promise<SwitchboardError> {
  return choice.then(
    () => expect.unreachable('it was chosen'),
    (error) => asSwitchboardError(error),
  );
}

describe('without a preference', () => {
  it('gVisor is preferred, then Firecracker, then E2B', async () => {
    expect(await chosen(undefined, [...providers])).toBe('gvisor');
    expect(await chosen(undefined, ['process', 'docker', 'e2b', 'firecracker'])).toBe('firecracker');
    expect(await chosen(undefined, ['process', 'docker', 'e2b'])).toBe('e2b');
  });

  it('weaker isolation is used only if it is allowed and nothing better is usable', async () => {
    expect(await chosen(undefined, ['docker', 'process'], ['process', 'docker'])).toBe('docker');
    expect(await chosen(undefined, ['docker', 'process'], ['process'])).toBe('process');
    expect(await chosen(undefined, ['docker', 'process', 'e2b'], ['process', 'docker'])).toBe('e2b');
  });

  it('the error says why each provider is unusable', async () => {
    const error = await refusal(chosen(undefined, ['docker', 'process']));
    expect(error.code).toBe('no_isolation');
    for (const provider of ['gvisor', 'firecracker', 'e2b'])
      expect(error.message).toContain(`${provider}: there is no ${provider}`);
    expect(error.message).not.toContain('there is no docker');
    expect(error.message).toContain('"allow"');
    const allowed = await refusal(chosen(undefined, ['process'], ['docker']));
    expect(allowed.message).toContain('docker: there is no docker');
  });
});

describe('a preference', () => {
  it.each(providers)('for %s is honored, or the choice fails', async (asked) => {
    expect(await chosen(asked, [asked])).toBe(asked);
    const others = providers.filter((each) => each !== asked);
    const error = await refusal(chosen(asked, others, ['docker', 'process']));
    expect(error.code).toBe('server_start_failed');
    expect(error.message).toContain(`"${asked}"`);
    expect(error.message).toContain(`there is no ${asked}`);
    expect(error.message).toContain('which the server requires');
  });
});

it('the chosen driver is usable, and isolates as requested or allowed', async () => {
  const someOf = <Item>(items: readonly Item[]) => fc.subarray([...items]);
  await fc.assert(
    fc.asyncProperty(
      fc.option(fc.constantFrom(...providers), { nil: undefined }),
      someOf(providers),
      someOf<'docker' | 'process'>(['docker', 'process']),
      async (asked, usable, allow) => {
        const permitted: Provider[] =
          asked === undefined ? ['gvisor', 'firecracker', 'e2b', ...allow] : [asked];
        const possible = permitted.filter((each) => usable.includes(each));
        const choice = chosen(asked, usable, allow);
        if (possible.length === 0) await refusal(choice);
        else expect(possible).toContain(await choice);
      },
    ),
  );
});

describe('the drivers of an installation', () => {
  let home: string;
  let options: DriversOptions;

  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
    options = {
      home,
      owner: 'test',
      children: ProcessRecord.open(home, (warning) => expect.unreachable(warning)),
      e2b: {},
      engine: join(home, 'no-engine.sock'),
      runtimes: { gvisor: 'runsc' },
      allow: [],
      volumeImages: true,
      callTimeoutMs: 30_000,
      heartbeatMs: 30_000,
      heartbeatTimeoutMs: 10_000,
    };
  });
  afterEach(() => rm(home, { recursive: true }));

  it('have the requested names and are created once', async () => {
    const drivers = createDrivers(options);
    for (const provider of providers) {
      const driver = await drivers.get(provider);
      expect(driver.provider).toBe(provider);
      expect(await drivers.get(provider)).toBe(driver);
    }
  });

  it('are refused without an engine and a key, with instructions', async () => {
    const error = await refusal(createDrivers(options).choose(undefined));
    expect(error.code).toBe('no_isolation');
    expect(error.message).toMatch(/^ {2}gvisor: .*no-engine\.sock/m);
    expect(error.message).toMatch(/^ {2}firecracker: .*no-engine\.sock/m);
    expect(error.message).toMatch(/^ {2}e2b: .*E2B_API_KEY/m);
  });

  it('mention volumes of the former provider only if the server has some', async () => {
    const { choose } = createDrivers(options);
    const former = (hasVolumes: boolean) => refusal(choose('gvisor', { hasVolumes }));
    expect((await former(true)).message).toContain('which ran the server before and has its volumes, cannot');
    expect((await former(false)).message).toContain('which ran the server before, cannot');
  });

  it('run a process if it is requested by name or allowed', async () => {
    expect((await createDrivers(options).choose('process')).provider).toBe('process');
    expect(
      (await createDrivers({ ...options, allow: ['docker', 'process'] }).choose(undefined)).provider,
    ).toBe('process');
  });
});

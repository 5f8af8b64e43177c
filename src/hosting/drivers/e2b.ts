import { createHmac } from 'node:crypto';
import type { ConnectionOpts, Sandbox, SandboxInfo } from 'e2b';
import { SwitchboardError } from '../../errors.ts';
import type { Driver, Instance, InstanceEvents, InstanceSpec, Survivors } from '../driver.ts';
import { E2bInstance, LEASE_MS } from './e2b/instance.ts';
import { type LoopbackPort, openLoopbackPort } from './e2b/loopback-port.ts';
import { SandboxProcess } from './e2b/sandbox-process.ts';
import { explain, isNotFound, loadSdk, type Sdk } from './e2b/sdk.ts';
import { portInUse } from './port-in-use.ts';

export interface E2bDriverOptions {
  apiKey: string | undefined;
  /** Where E2B is hosted by somebody else than E2B. */
  domain: string | undefined;
  /** Names this installation, so that the sandboxes of others are never touched. */
  owner: string;
}

/** What is written on a sandbox. */
const labels = {
  owner: 'dev.switchboard.owner',
  id: 'dev.switchboard.id',
  name: 'dev.switchboard.name',
  project: 'dev.switchboard.project',
  revision: 'dev.switchboard.revision',
};

/** How long the question may take whether E2B can be used. */
const CHECK_TIMEOUT_MS = 5_000;

/** Runs a server in a sandbox of E2B: its image is the name of an E2B template. */
export class E2bDriver implements Driver, Survivors {
  readonly provider = 'e2b';
  readonly survivors: Survivors = this;
  private readonly options: E2bDriverOptions;

  constructor(options: E2bDriverOptions) {
    this.options = options;
  }

  async unavailable(): Promise<string | undefined> {
    try {
      const { sdk, connection } = await this.open();
      const check = { ...connection, requestTimeoutMs: CHECK_TIMEOUT_MS, retries: 0, limit: 1 };
      await sdk.Sandbox.list(check).nextItems();
      return undefined;
    } catch (error) {
      return explain(error, 'be used').message;
    }
  }

  async start(spec: InstanceSpec, events: InstanceEvents, signal: AbortSignal): Promise<Instance> {
    signal.throwIfAborted();
    const template = templateOf(spec);
    const { sdk, connection } = await this.open();
    signal.throwIfAborted();
    events.log(
      'E2B: CPU, memory, disk and processes are limited as its template says, not by `resource_limits`.',
    );
    // Not given up on the way: a sandbox whose id nobody knows could not be ended.
    const sandbox = await sdk.Sandbox.create(template, {
      ...connection,
      metadata: this.labelsOf(spec),
      timeoutMs: LEASE_MS,
      allowInternetAccess: spec.hasNetwork,
      network: { allowPublicTraffic: false },
    }).catch((error) => {
      throw explain(error, `start a sandbox of the template "${template}"`);
    });
    try {
      signal.throwIfAborted();
      const server = await SandboxProcess.start(sandbox, spec, signal);
      return await instanceOf(sandbox, server, { spec, events, startedAt: new Date() });
    } catch (error) {
      await sandbox.kill().catch(() => {});
      signal.throwIfAborted();
      throw explain(error, `run "${spec.command}" in a sandbox of the template "${template}"`);
    }
  }

  async adopt(spec: InstanceSpec, events: InstanceEvents): Promise<Instance | undefined> {
    const { [labels.id]: id, [labels.revision]: revision } = this.labelsOf(spec);
    const found = (await this.list()).filter(({ metadata }) => metadata[labels.id] === id);
    let adopted: Instance | undefined;
    for (const info of found) {
      if (adopted !== undefined) break;
      if (info.state === 'running' && info.metadata[labels.revision] === revision)
        adopted = await this.takeOver(info, spec, events);
    }
    await this.end(found.filter(({ sandboxId }) => sandboxId !== adopted?.id));
    return adopted;
  }

  async reap(ids: readonly string[]): Promise<string[]> {
    return this.end((await this.list()).filter(({ metadata }) => !ids.includes(metadata[labels.id] ?? '')));
  }

  private async end(sandboxes: SandboxInfo[]): Promise<string[]> {
    const { sdk, connection } = await this.open();
    const ids = sandboxes.map(({ sandboxId }) => sandboxId);
    try {
      await Promise.all(ids.map((id) => sdk.Sandbox.kill(id, connection)));
    } catch (error) {
      throw explain(error, 'end sandboxes that nobody needs');
    }
    return ids;
  }

  private async takeOver(
    info: SandboxInfo,
    spec: InstanceSpec,
    events: InstanceEvents,
  ): Promise<Instance | undefined> {
    const { sdk, connection } = await this.open();
    try {
      const sandbox = await sdk.Sandbox.connect(info.sandboxId, { ...connection, timeoutMs: LEASE_MS });
      const server = await SandboxProcess.connect(sandbox);
      return await instanceOf(sandbox, server, { spec, events, startedAt: info.startedAt });
    } catch (error) {
      // The sandbox is gone, or the process in it.
      if (isNotFound(error)) return undefined;
      throw explain(error, `take over the sandbox ${info.sandboxId}`);
    }
  }

  /** All sandboxes of this installation. */
  private async list(): Promise<SandboxInfo[]> {
    const { sdk, connection } = await this.open();
    const { owner } = this.options;
    const pages = sdk.Sandbox.list({
      ...connection,
      query: { metadata: { [labels.owner]: owner }, state: ['running', 'paused'] },
    });
    const found: SandboxInfo[] = [];
    try {
      while (pages.hasNext) found.push(...(await pages.nextItems()));
    } catch (error) {
      throw explain(error, 'list the sandboxes');
    }
    return found.filter(({ metadata }) => metadata[labels.owner] === owner);
  }

  private async open(): Promise<{ sdk: Sdk; connection: ConnectionOpts }> {
    const { apiKey, domain } = this.options;
    if (apiKey === undefined || apiKey === '')
      throw new SwitchboardError(
        'invalid_config',
        'E2B_API_KEY is not set: E2B gives keys at e2b.dev/dashboard.',
      );
    const sdk = await loadSdk();
    return { sdk, connection: { apiKey, ...(domain === undefined ? {} : { domain }) } };
  }

  private labelsOf(spec: InstanceSpec): Record<string, string> {
    return {
      [labels.owner]: this.options.owner,
      [labels.id]: spec.id,
      [labels.name]: spec.name,
      [labels.project]: spec.project,
      [labels.revision]: revisionOf(spec, this.options.apiKey ?? ''),
    };
  }
}

/** Of all that a sandbox is made from. Keyed: secrets are in it, and everybody of the team at E2B sees the result. */
function revisionOf(spec: InstanceSpec, key: string): string {
  const { image, command, args, environment, hasStdio, port, hasNetwork } = spec;
  const variables = Object.entries(environment).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const parts = [image, command, args, variables, hasStdio, port ?? null, hasNetwork];
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest('hex');
}

function templateOf({ image, command, volumes }: InstanceSpec): string {
  if (image === undefined) throw refusal('it needs an `image`: the name of an E2B template, such as "base"');
  if (command === undefined)
    throw refusal('it needs a `command`: nobody can speak with what the template itself starts');
  if (volumes.length > 0)
    throw refusal('it has no volumes: leave `volumes` out, or choose the provider "gvisor"');
  return image;
}

function refusal(why: string): SwitchboardError {
  return new SwitchboardError('invalid_config', `The provider "e2b" cannot run this server: ${why}.`);
}

async function instanceOf(
  sandbox: Sandbox,
  server: SandboxProcess,
  { spec, events, startedAt }: { spec: InstanceSpec; events: InstanceEvents; startedAt: Date },
): Promise<Instance> {
  const port = spec.port === undefined ? undefined : await publish(sandbox, spec.port, spec);
  return new E2bInstance({ sandbox, process: server, port, startedAt, hasStdio: spec.hasStdio, events });
}

async function publish(
  sandbox: Sandbox,
  port: number,
  { name, hostPort, formerHostPort }: InstanceSpec,
): Promise<LoopbackPort> {
  const token = sandbox.trafficAccessToken;
  const target = {
    // One address for all sandboxes, as some have who host E2B themselves, needs to be told of which it is.
    url: process.env.E2B_SANDBOX_URL || `https://${sandbox.getHost(port)}`,
    headers: {
      'E2b-Sandbox-Id': sandbox.sandboxId,
      'E2b-Sandbox-Port': String(port),
      ...(token === undefined ? {} : { 'e2b-traffic-access-token': token }),
    },
  };
  if (hostPort !== undefined)
    return openLoopbackPort(target, hostPort).catch(() => Promise.reject(portInUse(name, hostPort)));
  return openLoopbackPort(target, formerHostPort).catch(() => openLoopbackPort(target));
}

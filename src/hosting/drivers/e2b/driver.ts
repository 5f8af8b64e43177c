import { SwitchboardError } from '../../../errors.ts';
import type { Driver, Instance, InstanceEvents, InstanceSpec } from '../../driver.ts';
import { instanceOf, LEASE_MS } from './instance.ts';
import { labelsOf } from './options.ts';
import { SandboxProcess } from './sandbox-process.ts';
import { type Account, connect, explain } from './sdk.ts';
import { E2bSurvivors } from './survivors.ts';

export interface E2bDriverOptions extends Account {
  /** Identifies this installation, so that it never touches sandboxes of another one. */
  owner: string;
}

const CHECK_TIMEOUT_MS = 5_000;

/** The image of the server is the name of an E2B template. */
export class E2bDriver implements Driver {
  readonly provider = 'e2b';
  readonly survivors: E2bSurvivors;
  private readonly options: E2bDriverOptions;

  constructor(options: E2bDriverOptions) {
    this.options = options;
    this.survivors = new E2bSurvivors(options);
  }

  async unavailable(): Promise<string | undefined> {
    try {
      const { sdk, connection } = await connect(this.options);
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
    const { sdk, connection } = await connect(this.options);
    signal.throwIfAborted();
    events.log('E2B: the template limits CPU, memory, disk and processes; `resource_limits` has no effect.');
    // Not aborted, because a sandbox with an unknown id could not be killed.
    const sandbox = await sdk.Sandbox.create(template, {
      ...connection,
      metadata: labelsOf(spec, this.options),
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
}

function templateOf({ image, command, volumes }: InstanceSpec): string {
  if (image === undefined)
    throw refusal('it requires an `image`, the name of an E2B template such as "base"');
  if (command === undefined)
    throw refusal('it requires a `command`: Switchboard cannot connect to what the template itself starts');
  if (volumes.length > 0)
    throw refusal('it does not support volumes: remove `volumes`, or use the provider "gvisor"');
  return image;
}

function refusal(why: string): SwitchboardError {
  return new SwitchboardError('invalid_config', `The provider "e2b" cannot run this server: ${why}.`);
}

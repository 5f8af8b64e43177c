import { SwitchboardError } from '../../../errors.ts';
import {
  type Driver,
  formatBytes,
  type Instance,
  type InstanceEvents,
  type InstanceSpec,
  portInUse,
} from '../../driver.ts';
import { listContainers, removeContainer } from './containers.ts';
import { DiskMeter } from './disk.ts';
import { Engine, EngineRefusal } from './engine.ts';
import { provideImage } from './image.ts';
import { openInstance } from './instance.ts';
import { containerName, containerOptions, type Installation, portBindings } from './options.ts';
import { type Choice, chooseRuntime, type EngineInfo } from './runtimes.ts';
import { DockerSurvivors } from './survivors.ts';
import { DockerVolumes } from './volumes.ts';

export interface DockerDriverOptions {
  provider: 'gvisor' | 'firecracker' | 'docker';
  /** A socket path, unix://… or tcp://127.0.0.1:2375 */
  engine: string;
  /** The engine's name of the runtime. If undefined, Firecracker is detected, and Docker uses the engine's default. */
  runtime: string | undefined;
  /** Identifies this installation, so that it never touches containers of another one. */
  owner: string;
  /** Whether new volumes may be mounted images if the engine cannot limit their size. */
  volumeImages: boolean;
}

type Options = ReturnType<typeof containerOptions>;

/** A sandbox may have to load the image. */
const START_MS = 120_000;
const ANSWER_MS = 5_000;
/** Shorter values are unlikely to be secrets, and would match everywhere. */
const SHORTEST_SECRET = 4;

/** Runs servers as containers of a Docker engine, plain or in the sandbox of a runtime. */
export class DockerDriver implements Driver {
  readonly provider: DockerDriverOptions['provider'];
  readonly survivors: DockerSurvivors;
  readonly volumes: DockerVolumes;
  readonly engine: Engine;
  readonly diskMeter: DiskMeter;
  private readonly configuredRuntime: string | undefined;
  private readonly owner: string;
  /** False after the first refusal. */
  private canLimitDisk = true;

  constructor({ provider, engine, runtime, owner, volumeImages }: DockerDriverOptions) {
    this.provider = provider;
    this.engine = new Engine(engine);
    this.configuredRuntime = runtime;
    this.owner = owner;
    this.diskMeter = new DiskMeter(this.engine);
    this.volumes = new DockerVolumes({ engine: this.engine, owner, hasImages: volumeImages });
    this.survivors = new DockerSurvivors({
      engine: this.engine,
      diskMeter: this.diskMeter,
      volumes: this.volumes,
      us: { owner, provider },
      installation: () => this.installation(),
    });
  }

  async unavailable(): Promise<string | undefined> {
    try {
      const choice = await this.chooseRuntime();
      return 'problem' in choice ? choice.problem : undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }

  async start(spec: InstanceSpec, events: InstanceEvents, signal: AbortSignal): Promise<Instance> {
    try {
      return await this.tryToStart(spec, events, signal);
    } catch (error) {
      throw error instanceof EngineRefusal ? cannotStart(spec, error) : error;
    }
  }

  async prepare(spec: InstanceSpec, events: InstanceEvents, signal: AbortSignal): Promise<void> {
    try {
      await provideImage(this.engine, imageOf(spec), events.log, signal);
    } catch (error) {
      throw error instanceof EngineRefusal ? cannotStart(spec, error) : error;
    }
  }

  private async tryToStart(
    spec: InstanceSpec,
    events: InstanceEvents,
    signal: AbortSignal,
  ): Promise<Instance> {
    signal.throwIfAborted();
    const image = imageOf(spec);
    const installation = await this.installation();
    await this.removeLeftovers(spec.id);
    await provideImage(this.engine, image, events.log, signal);
    const volumes = await this.volumes.list(spec);
    signal.throwIfAborted();
    // Requests are not aborted from here on, because what they create must be removed.
    const options = containerOptions(spec, image, installation);
    try {
      await this.volumes.provide(options.HostConfig.Mounts, spec, events.log);
      await this.checkDisk(spec, volumes);
      signal.throwIfAborted();
      return await this.createAndRun(spec, options, events, signal);
    } catch (error) {
      await this.volumes.removeAllBut(volumes, spec).catch(() => {});
      throw error;
    }
  }

  /** Prefers the former port if no other is requested. */
  private async createAndRun(
    spec: InstanceSpec,
    options: Options,
    events: InstanceEvents,
    signal: AbortSignal,
  ) {
    const { name, port, hostPort, formerHostPort } = spec;
    try {
      if (port === undefined || hostPort !== undefined || formerHostPort === undefined)
        return await this.createOne(spec, options, events, signal);
      const PortBindings = portBindings(port, formerHostPort);
      const withFormerPort = { ...options, HostConfig: { ...options.HostConfig, PortBindings } };
      return await this.createOne(spec, withFormerPort, events, signal);
    } catch (error) {
      if (!isPortInUse(error)) throw error;
      if (hostPort !== undefined) throw portInUse(name, hostPort);
      return await this.createOne(spec, options, events, signal);
    }
  }

  private async createOne(
    spec: InstanceSpec,
    options: Options,
    events: InstanceEvents,
    signal: AbortSignal,
  ): Promise<Instance> {
    const id = await this.create(spec, options);
    const start = async () => {
      signal.throwIfAborted();
      await this.engine.post(`/containers/${id}/start`, { timeoutMs: START_MS });
      signal.throwIfAborted();
    };
    try {
      return (await openInstance(this, id, spec, events, start))!;
    } catch (error) {
      await removeContainer(this.engine, id).catch(() => {});
      throw error;
    }
  }

  private async create(spec: InstanceSpec, options: Options): Promise<string> {
    const query = { name: containerName(spec) };
    const create = async (body: object) =>
      (await this.engine.post<{ Id: string }>('/containers/create', { query, body })).Id;
    if (!this.canLimitDisk || !spec.hasWritableRoot) return create(options);
    const StorageOpt = { size: String(spec.limits.diskBytes) };
    try {
      return await create({ ...options, HostConfig: { ...options.HostConfig, StorageOpt } });
    } catch (error) {
      if (!(error instanceof EngineRefusal) || !/storage.?opt/i.test(error.message)) throw error;
      // Without quotas, disk usage is measured instead.
      this.canLimitDisk = false;
      return create(options);
    }
  }

  /** A server over its limit would be killed at once. */
  private async checkDisk({ limits, name }: InstanceSpec, volumes: string[]): Promise<void> {
    if (volumes.length === 0) return;
    const used = await this.diskMeter.measureNow(volumes).catch(() => 0);
    if (used <= limits.diskBytes) return;
    const message = `The volumes of the server "${name}" hold ${formatBytes(used)}, more than its disk limit of ${formatBytes(limits.diskBytes)}. Raise the limit, or delete files from the volumes ${volumes.join(', ')}.`;
    throw new SwitchboardError('invalid_config', message);
  }

  /** Two instances of a server would write to the same volumes. */
  private async removeLeftovers(id: string): Promise<void> {
    const left = await listContainers(this.engine, { owner: this.owner, id });
    await Promise.all(left.map(({ Id }) => removeContainer(this.engine, Id)));
  }

  private async installation(): Promise<Installation> {
    const choice = await this.chooseRuntime();
    if ('problem' in choice) throw new SwitchboardError('server_start_failed', choice.problem);
    return { provider: this.provider, owner: this.owner, runtime: choice.runtime };
  }

  private async chooseRuntime(): Promise<Choice> {
    const info = await this.engine.get<EngineInfo>('/info', { timeoutMs: ANSWER_MS });
    return chooseRuntime(this.provider, this.configuredRuntime, this.engine, info);
  }
}

function isPortInUse(error: unknown): boolean {
  return (
    error instanceof EngineRefusal && /port is already allocated|address already in use/i.test(error.message)
  );
}

function imageOf({ image, name }: InstanceSpec): string {
  if (image !== undefined) return image;
  const message = `The server "${name}" has no \`image\`, which a container requires. Set an image, or use the provider "process" to run a command without isolation.`;
  throw new SwitchboardError('invalid_config', message);
}

/** Masks the environment, because the engine quotes its input. */
function cannotStart({ name, image, environment }: InstanceSpec, cause: EngineRefusal): SwitchboardError {
  const text = Object.values(environment)
    .filter((value) => value.length >= SHORTEST_SECRET)
    .reduce((masked, value) => masked.replaceAll(value, '***'), cause.message);
  const message = `Cannot start the container of the server "${name}" with the image "${image}": ${text.replace(/\.?$/, '.')}`;
  // Without the cause, which has the unmasked text.
  return new SwitchboardError(cause.status === 400 ? 'invalid_config' : 'server_start_failed', message);
}

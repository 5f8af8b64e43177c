import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Limits } from '../../../config/limits.ts';
import { SwitchboardError } from '../../../errors.ts';
import {
  type Exit,
  formatBytes,
  type Instance,
  type InstanceEvents,
  type InstanceSpec,
  type ResourceUsage,
} from '../../driver.ts';
import { ExitWaiter, type Inspected, inspectContainer, isGone, removeContainer } from './containers.ts';
import { type Disk, type DiskMeter, DiskWatch } from './disk.ts';
import { type Engine, EngineAway } from './engine.ts';
import { containerLabels } from './options.ts';
import { ContainerStreams } from './streams.ts';
import { UsageMeter } from './usage-meter.ts';

interface Running {
  id: string;
  startedAt: Date;
  url: string | undefined;
  limits: Limits;
  streams: ContainerStreams;
  waiter: ExitWaiter;
  disk: Disk;
}

export interface EngineParts {
  engine: Engine;
  diskMeter: DiskMeter;
}

/** Without `start`, the result is undefined if the container does not run. */
export async function openInstance(
  { engine, diskMeter }: EngineParts,
  id: string,
  spec: InstanceSpec,
  { log }: InstanceEvents,
  start?: () => Promise<void>,
): Promise<Instance | undefined> {
  // Before the start, so that no output is lost and no exit missed.
  const streams = await ContainerStreams.attach(engine, id, spec.hasStdio, log);
  let waiter: ExitWaiter | undefined;
  try {
    waiter =
      start === undefined ? ExitWaiter.whileRunning(engine, id) : await ExitWaiter.beforeStart(engine, id);
    await start?.();
    const inspected = await inspectContainer(engine, id);
    if (start !== undefined || inspected.State.Running) {
      const running = { id, ...describeRunning(id, spec, inspected), streams, waiter };
      return new DockerInstance(engine, running, diskMeter);
    }
  } catch (error) {
    streams.destroy();
    waiter?.stop();
    throw error;
  }
  streams.destroy();
  waiter.stop();
  return undefined;
}

function describeRunning(
  id: string,
  { limits, port, hasWritableRoot }: InstanceSpec,
  { State, NetworkSettings, Mounts }: Inspected,
): Pick<Running, 'limits' | 'startedAt' | 'url' | 'disk'> {
  const published = port === undefined ? undefined : NetworkSettings.Ports?.[`${port}/tcp`]?.[0];
  const volumes = Mounts.flatMap(({ Type, Name }) => (Type === 'volume' && Name !== undefined ? [Name] : []));
  return {
    limits,
    startedAt: new Date(State.StartedAt),
    url: published === undefined ? undefined : `http://127.0.0.1:${published.HostPort}`,
    // Includes volumes that only the image declares.
    disk: { root: hasWritableRoot ? id : undefined, volumes },
  };
}

/** For the rest of the output after an exit. */
const DRAIN_MS = 2_000;
const ANSWER_MS = 5_000;
/** How much longer than the grace period the engine may take to stop a container. */
const STOPPING_MS = 15_000;

class DockerInstance implements Instance {
  readonly id: string;
  readonly startedAt: Date;
  readonly stdio: { input: Writable; output: Readable } | undefined;
  readonly url: string | undefined;
  readonly exited: Promise<Exit>;
  private readonly engine: Engine;
  private readonly limits: Limits;
  private readonly streams: ContainerStreams;
  private readonly settle: (exit: Exit) => void;
  private readonly meter: UsageMeter;
  private readonly disk: DiskWatch | undefined;
  private waiter: ExitWaiter;
  private isStopping = false;
  private isOver = false;
  private reason: string | undefined;

  constructor(engine: Engine, running: Running, diskMeter: DiskMeter) {
    this.engine = engine;
    this.id = running.id;
    this.startedAt = running.startedAt;
    this.url = running.url;
    this.limits = running.limits;
    this.streams = running.streams;
    this.waiter = running.waiter;
    this.stdio = running.streams.stdio;
    this.meter = new UsageMeter(engine, running.id);
    const { promise, resolve } = Promise.withResolvers<Exit>();
    this.exited = promise;
    this.settle = resolve;
    if (running.disk.root !== undefined || running.disk.volumes.length > 0) {
      this.disk = new DiskWatch(
        running.limits.diskBytes,
        (isUrgent) => diskMeter.measure(running.disk, isUrgent),
        (bytes) => this.measured(bytes),
      );
    }
    void this.watch();
    void this.watchStreams();
  }

  async stop(graceMs: number): Promise<void> {
    try {
      await this.end(graceMs);
    } catch (error) {
      this.finish(lost);
      const message = `The container ${this.id.slice(0, 12)} could not be stopped and may still be running: ${(error as Error).message}`;
      throw new SwitchboardError('server_unavailable', message, { cause: error });
    }
    await this.untilReported();
    // The engine may not have reported the exit.
    this.finish(ended(undefined, this.reason));
  }

  async usage(): Promise<ResourceUsage> {
    const used = await this.meter.read();
    return { ...used, diskBytes: this.disk === undefined ? 0 : this.disk.bytes };
  }

  release(): void {
    this.isOver = true;
    this.detach();
  }

  private async watch(): Promise<void> {
    const code = await this.untilExited();
    if (this.isOver) return;
    if (code === undefined) return this.finish(lost);
    this.streams.drain();
    await Promise.race([this.streams.closed, delay(DRAIN_MS, undefined, { ref: false })]);
    try {
      const reason = this.reason ?? (await this.findReason(code));
      await removeContainer(this.engine, this.id);
      this.finish(ended(code, reason));
    } catch (error) {
      // An engine that shuts down stops its containers, and no longer answers.
      this.finish(error instanceof EngineAway ? lost : ended(code, this.reason));
    }
  }

  /** Undefined if the exit code is unknown. */
  private async untilExited(): Promise<number | undefined> {
    for (;;) {
      try {
        return await this.waiter.exitCode;
      } catch {
        // The engine stopped, or a proxy closed an idle connection.
        if (this.isOver || this.streams.isBroken || !(await this.isRunning())) return undefined;
        this.waiter = this.waiter.again();
      }
    }
  }

  /** A container with broken streams is unusable until it is adopted again. */
  private async watchStreams(): Promise<void> {
    await this.streams.broken;
    await Promise.race([this.exited, delay(DRAIN_MS, undefined, { ref: false })]);
    if (!this.isOver && (await this.isRunning())) this.finish(lost);
  }

  private measured(bytes: number): void {
    if (bytes <= this.limits.diskBytes || this.isOver || this.reason !== undefined) return;
    this.reason = `used more than its ${formatBytes(this.limits.diskBytes)} of disk`;
    // Without grace, because it would continue to write. A failure means that the engine is unavailable.
    this.end(0).catch(() => {});
  }

  private async isRunning(): Promise<boolean> {
    try {
      const { State } = await inspectContainer(this.engine, this.id, { timeoutMs: ANSWER_MS });
      return State.Running && Date.parse(State.StartedAt) === this.startedAt.getTime();
    } catch {
      return false;
    }
  }

  private async findReason(code: number): Promise<string | undefined> {
    const { State, Config } = await inspectContainer(this.engine, this.id, { timeoutMs: ANSWER_MS });
    const isGvisor = Config.Labels[containerLabels.provider] === 'gvisor';
    const tooMuch = `used more than its ${formatBytes(this.limits.memoryBytes)} of memory`;
    // Docker also sets it if the container survived the killed process. gVisor never survives, but may exit with another code if
    // a different part of it was killed.
    if (State.OOMKilled && (code === KILLED || isGvisor)) return tooMuch;
    // The engine misses about one in twenty kills of gVisor sandboxes.
    if (code === KILLED && isGvisor && !this.isStopping) return `perhaps it ${tooMuch}`;
    return undefined;
  }

  private async end(graceMs: number): Promise<void> {
    this.isStopping = true;
    const seconds = Math.ceil(graceMs / 1_000);
    try {
      await this.engine.post(`/containers/${this.id}/${seconds === 0 ? 'kill' : 'stop'}`, {
        query: seconds === 0 ? {} : { t: String(seconds) },
        timeoutMs: seconds * 1_000 + STOPPING_MS,
      });
    } catch (error) {
      if (isGone(error)) return;
      if (error instanceof EngineAway) throw error;
      // A container that cannot be stopped can still be removed by force.
    }
    // `watch` inspects the container before it is removed.
    await this.untilReported();
    await removeContainer(this.engine, this.id);
  }

  private async untilReported(): Promise<void> {
    if (this.isOver) return;
    await Promise.race([this.exited, delay(DRAIN_MS + ANSWER_MS, undefined, { ref: false })]);
  }

  private finish(exit: Exit): void {
    if (this.isOver) return;
    this.isOver = true;
    this.detach();
    this.settle(exit);
  }

  private detach(): void {
    this.disk?.stop();
    this.waiter.stop();
    this.streams.destroy();
  }
}

const lost: Exit = {
  code: undefined,
  signal: undefined,
  reason: 'the connection to the Docker engine was lost',
  isLost: true,
};
const KILLED = 128 + constants.signals.SIGKILL;

/** As in a shell, the exit code encodes the signal. */
function ended(code: number | undefined, reason: string | undefined): Exit {
  const signal = Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0];
  return { code: signal === undefined ? code : undefined, signal, reason, isLost: false };
}

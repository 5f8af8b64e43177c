import type { Instance, InstanceEvents, InstanceSpec, Survivors } from '../../driver.ts';
import { inspectContainer, isGone, isRunning, listContainers, removeContainer } from './containers.ts';
import type { DiskMeter } from './disk.ts';
import type { Engine } from './engine.ts';
import { ExitWaiter } from './exit-waiter.ts';
import { DockerInstance, describeRunning } from './instance.ts';
import { containerLabels, containerOptions, type Installation } from './options.ts';
import { ContainerStreams } from './streams.ts';
import type { DockerVolumes } from './volumes.ts';

export interface SurvivorsOptions {
  engine: Engine;
  diskMeter: DiskMeter;
  volumes: DockerVolumes;
  us: Pick<Installation, 'owner' | 'provider'>;
  installation: () => Promise<Installation>;
}

/** Finds the containers that kept running without Switchboard. */
export class DockerSurvivors implements Survivors {
  private readonly engine: Engine;
  private readonly diskMeter: DiskMeter;
  private readonly volumes: DockerVolumes;
  private readonly us: Pick<Installation, 'owner' | 'provider'>;
  private readonly installation: () => Promise<Installation>;

  constructor({ engine, diskMeter, volumes, us, installation }: SurvivorsOptions) {
    this.engine = engine;
    this.diskMeter = diskMeter;
    this.volumes = volumes;
    this.us = us;
    this.installation = installation;
  }

  async adopt(spec: InstanceSpec, events: InstanceEvents): Promise<Instance | undefined> {
    const installation = await this.installation();
    const { Labels } = containerOptions(spec, spec.image ?? '', installation);
    const revision = Labels[containerLabels.revision];
    // Of all providers, because the server may have moved to another one.
    const found = await listContainers(this.engine, { owner: installation.owner, id: spec.id });
    const kept = found.find((each) => isRunning(each) && each.Labels[containerLabels.revision] === revision);
    await this.remove(found.filter((each) => each !== kept).map(({ Id }) => Id));
    if (kept === undefined) return undefined;
    if (spec.volumes.length > 0) await this.volumes.mountAgain(spec, events.log);
    const instance = await this.connect(kept.Id, spec, events);
    if (instance === undefined) await this.remove([kept.Id]);
    return instance;
  }

  async reap(ids: readonly string[]): Promise<string[]> {
    const found = await listContainers(this.engine, this.us);
    const seen = new Set<string>();
    const unwanted = found.filter(({ Labels }) => {
      const id = Labels[containerLabels.id] ?? '';
      const isDouble = seen.has(id);
      seen.add(id);
      return isDouble || !ids.includes(id);
    });
    return this.remove(unwanted.map(({ Id }) => Id));
  }

  /** Undefined if it has just ended. */
  private async connect(
    id: string,
    spec: InstanceSpec,
    events: InstanceEvents,
  ): Promise<Instance | undefined> {
    const waiter = ExitWaiter.whileRunning(this.engine, id);
    let streams: ContainerStreams | undefined;
    try {
      streams = await ContainerStreams.attach(this.engine, id, spec.hasStdio, events.log);
      const inspected = await inspectContainer(this.engine, id);
      if (inspected.State.Running) {
        const running = describeRunning(id, spec, inspected);
        return new DockerInstance(this.engine, { ...running, streams, waiter }, this.diskMeter);
      }
    } catch (error) {
      streams?.destroy();
      waiter.stop();
      if (!isGone(error)) throw error;
    }
    streams?.destroy();
    waiter.stop();
    return undefined;
  }

  private async remove(ids: string[]): Promise<string[]> {
    await Promise.all(ids.map((id) => removeContainer(this.engine, id)));
    return ids;
  }
}

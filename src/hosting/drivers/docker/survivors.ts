import type { Instance, InstanceEvents, InstanceSpec, Survivors } from '../../driver.ts';
import { isGone, isRunning, listContainers, removeContainer } from './containers.ts';
import { type EngineParts, openInstance } from './instance.ts';
import { containerLabels, containerOptions, type Installation } from './options.ts';
import type { DockerVolumes } from './volumes.ts';

interface SurvivorsOptions extends EngineParts {
  volumes: DockerVolumes;
  us: Pick<Installation, 'owner' | 'provider'>;
  installation: () => Promise<Installation>;
}

export class DockerSurvivors implements Survivors {
  private readonly options: SurvivorsOptions;

  constructor(options: SurvivorsOptions) {
    this.options = options;
  }

  async adopt(spec: InstanceSpec, events: InstanceEvents): Promise<Instance | undefined> {
    const { engine, volumes } = this.options;
    const installation = await this.options.installation();
    const { Labels } = containerOptions(spec, spec.image ?? '', installation);
    const revision = Labels[containerLabels.revision];
    // Of all providers, because the server may have moved to another one.
    const found = await listContainers(engine, { owner: installation.owner, id: spec.id });
    const kept = found.find((each) => isRunning(each) && each.Labels[containerLabels.revision] === revision);
    await this.remove(found.filter((each) => each !== kept).map(({ Id }) => Id));
    if (kept === undefined) return undefined;
    if (spec.volumes.length > 0) await volumes.mountAgain(spec, events.log);
    const instance = await openInstance(this.options, kept.Id, spec, events).catch((error: unknown) => {
      if (!isGone(error)) throw error;
      return undefined;
    });
    if (instance === undefined) await this.remove([kept.Id]);
    return instance;
  }

  async reap(ids: readonly string[]): Promise<string[]> {
    const found = await listContainers(this.options.engine, this.options.us);
    const seen = new Set<string>();
    const unwanted = found.filter(({ Labels }) => {
      const id = Labels[containerLabels.id] ?? '';
      const isDouble = seen.has(id);
      seen.add(id);
      return isDouble || !ids.includes(id);
    });
    return this.remove(unwanted.map(({ Id }) => Id));
  }

  private async remove(ids: string[]): Promise<string[]> {
    await Promise.all(ids.map((id) => removeContainer(this.options.engine, id)));
    return ids;
  }
}

import { createHash } from 'node:crypto';
import { SwitchboardError } from '../../../errors.ts';
import type { InstanceSpec, Volumes } from '../../driver.ts';
import { type Engine, EngineRefusal } from './engine.ts';

/** What volumes are bound to is not the id of a server: they are there again when it is registered anew. */
type VolumeOwner = Pick<InstanceSpec, 'name' | 'project'>;

const volumeLabels = {
  owner: 'dev.switchboard.owner',
  project: 'dev.switchboard.project',
  name: 'dev.switchboard.name',
  path: 'dev.switchboard.path',
} as const;

/** A mount of the volume for that path, which the engine makes where it is not there. */
export function volumeMount(owner: string, server: VolumeOwner, path: string) {
  return {
    Type: 'volume',
    Source: volumeName(owner, server, path),
    Target: path,
    VolumeOptions: {
      Labels: {
        [volumeLabels.owner]: owner,
        [volumeLabels.project]: server.project,
        [volumeLabels.name]: server.name,
        [volumeLabels.path]: path,
      },
    },
  };
}

function volumeName(owner: string, { project, name }: VolumeOwner, path: string): string {
  const hash = createHash('sha256').update(JSON.stringify([owner, project, name, path]));
  return `switchboard-${hash.digest('hex').slice(0, 32)}`;
}

export class DockerVolumes implements Volumes {
  private readonly engine: Engine;
  private readonly owner: string;

  constructor(engine: Engine, owner: string) {
    this.engine = engine;
    this.owner = owner;
  }

  /** The names of those that are there. */
  async list({ name, project }: VolumeOwner): Promise<string[]> {
    const label = [
      `${volumeLabels.owner}=${this.owner}`,
      `${volumeLabels.project}=${project}`,
      `${volumeLabels.name}=${name}`,
    ];
    const found = await this.engine.get<{ Volumes: { Name: string }[] | null }>('/volumes', {
      query: { filters: JSON.stringify({ label }) },
    });
    return (found.Volumes ?? []).map((volume) => volume.Name);
  }

  async remove(server: VolumeOwner): Promise<string[]> {
    const names = await this.list(server);
    await Promise.all(names.map((name) => this.removeOne(name, server)));
    return names;
  }

  /** Takes back what a start made that came to nothing. */
  async removeAllBut(kept: readonly string[], server: VolumeOwner): Promise<void> {
    const names = (await this.list(server)).filter((name) => !kept.includes(name));
    await Promise.all(names.map((name) => this.removeOne(name, server)));
  }

  private async removeOne(volume: string, { name }: VolumeOwner): Promise<void> {
    try {
      await this.engine.delete(`/volumes/${volume}`);
    } catch (error) {
      if (!(error instanceof EngineRefusal)) throw error;
      if (error.status === 404) return;
      if (error.status !== 409) throw error;
      const message = `The volume ${volume} of the server "${name}" is in use. Stop what uses it (docker ps --filter volume=${volume}), then remove it again.`;
      throw new SwitchboardError('conflict', message, { cause: error });
    }
  }
}

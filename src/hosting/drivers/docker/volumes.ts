import { createHash } from 'node:crypto';
import { SwitchboardError } from '../../../errors.ts';
import type { InstanceEvents, InstanceSpec, Volumes } from '../../driver.ts';
import { formatBytes } from '../../driver.ts';
import { type Engine, EngineRefusal } from './engine.ts';
import { isMounted, VolumeImages } from './volume-images.ts';

/** Volumes belong to a name, not an id, so that a server finds them when it is registered again. */
type VolumeOwner = Pick<InstanceSpec, 'name' | 'project'>;

const volumeLabels = {
  owner: 'dev.switchboard.owner',
  project: 'dev.switchboard.project',
  name: 'dev.switchboard.name',
  path: 'dev.switchboard.path',
  /** Set if the content is in an image that must be mounted. */
  image: 'dev.switchboard.image',
} as const;

interface Listed {
  Name: string;
  Mountpoint: string;
  Labels: Record<string, string> | null;
  Options: Record<string, string> | null;
}

type Log = InstanceEvents['log'];

/** The engine creates the volume if it does not exist. */
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

export interface DockerVolumesOptions {
  engine: Engine;
  owner: string;
  hasImages: boolean;
}

export class DockerVolumes implements Volumes {
  private readonly engine: Engine;
  private readonly owner: string;
  private readonly hasImages: boolean;
  private readonly images: VolumeImages;
  /** False after the first refusal. */
  private hasQuotas = true;

  constructor({ engine, owner, hasImages }: DockerVolumesOptions) {
    this.engine = engine;
    this.owner = owner;
    this.hasImages = hasImages;
    this.images = new VolumeImages(engine.socketPath);
  }

  async list(server: VolumeOwner): Promise<string[]> {
    return (await this.find(server)).map(({ Name }) => Name);
  }

  /**
   * Creates missing volumes with a size limit if possible; otherwise the engine creates them with the container. Existing
   * ones are mounted, and grow with the limit.
   */
  async provide(
    mounts: readonly ReturnType<typeof volumeMount>[],
    { limits, ...server }: InstanceSpec,
    log: Log,
  ): Promise<void> {
    const existing = await this.find(server);
    for (const mount of mounts) {
      const known = existing.find(({ Name }) => Name === mount.Source);
      if (known === undefined) await this.make(mount, limits.diskBytes, log);
      else if (hasImage(known)) await this.open(known, limits.diskBytes, log);
      else noteQuota(known, limits.diskBytes, log);
    }
  }

  /** For a running container, whose volumes work without the mounts but cannot be measured. */
  async mountAgain(server: VolumeOwner, log: Log): Promise<void> {
    for (const volume of (await this.find(server)).filter(hasImage)) {
      await this.images.mount(volume.Mountpoint).catch((error: Error) => {
        log(`Cannot measure the volume ${volume.Name}, because mounting it failed: ${error.message}.`);
      });
    }
  }

  async remove(server: VolumeOwner): Promise<string[]> {
    return this.removeAllBut([], server);
  }

  /** Cleans up after a failed start. */
  async removeAllBut(kept: readonly string[], server: VolumeOwner): Promise<string[]> {
    const unwanted = (await this.find(server)).filter(({ Name }) => !kept.includes(Name));
    await Promise.all(unwanted.map((volume) => this.removeOne(volume, server)));
    return unwanted.map(({ Name }) => Name);
  }

  private async find({ name, project }: VolumeOwner): Promise<Listed[]> {
    const label = [
      `${volumeLabels.owner}=${this.owner}`,
      `${volumeLabels.project}=${project}`,
      `${volumeLabels.name}=${name}`,
    ];
    const found = await this.engine.get<{ Volumes: Listed[] | null }>('/volumes', {
      query: { filters: JSON.stringify({ label }) },
    });
    return found.Volumes ?? [];
  }

  private async make(mount: ReturnType<typeof volumeMount>, bytes: number, log: Log): Promise<void> {
    const { Source: Name, Target, VolumeOptions } = mount;
    const { Labels } = VolumeOptions;
    if (this.hasQuotas) {
      try {
        await this.create({ Name, Labels, DriverOpts: { size: String(bytes) } });
        return;
      } catch (error) {
        if (!(error instanceof EngineRefusal) || !/quota|invalid option/i.test(error.message)) throw error;
        this.hasQuotas = false;
      }
    }
    if (!this.hasImages || !(await this.images.canBeMade())) return;
    const volume = await this.create({ Name, Labels: { ...Labels, [volumeLabels.image]: 'ext4' } });
    try {
      await this.images.make(volume.Mountpoint, bytes);
    } catch (error) {
      log(`The size of the volume at ${Target} is measured but not limited: ${(error as Error).message}.`);
      // Without its image, the volume would have a wrong label.
      await this.images.unmount(volume.Mountpoint).catch(() => {});
      await this.engine.delete(`/volumes/${Name}`);
    }
  }

  private create(body: object): Promise<Listed> {
    return this.engine.post<Listed>('/volumes/create', { body });
  }

  /** Rejects if it cannot be mounted, because the server would not find its data and would write to a hidden folder. */
  private async open({ Name, Mountpoint }: Listed, bytes: number, log: Log): Promise<void> {
    try {
      if (process.getuid?.() !== 0 && (await isMounted(Mountpoint))) return;
      // Switchboard was killed while creating it.
      if (!(await this.images.exists(Mountpoint))) return await this.images.make(Mountpoint, bytes);
      if (await this.images.isTooSmall(Mountpoint, bytes)) {
        await this.images.grow(Mountpoint, bytes).catch((error: Error) => {
          log(`Cannot grow the volume ${Name} to ${formatBytes(bytes)}: ${error.message}.`);
        });
      }
      await this.images.mount(Mountpoint);
    } catch (error) {
      const message = `Cannot mount the volume ${Name} at ${Mountpoint}, so the server would not find its data: ${(error as Error).message}.`;
      throw new SwitchboardError('server_start_failed', message, { cause: error });
    }
  }

  private async removeOne(volume: Listed, { name }: VolumeOwner): Promise<void> {
    const { Name, Mountpoint } = volume;
    // Otherwise the engine would delete the content, and then fail.
    if (hasImage(volume)) {
      await this.images.unmount(Mountpoint).catch((cause: Error) => {
        const message = `Cannot unmount the volume ${Name} of the server "${name}": ${cause.message}. Unmount ${Mountpoint} as root, then retry the removal.`;
        throw new SwitchboardError('conflict', message, { cause });
      });
    }
    try {
      await this.engine.delete(`/volumes/${Name}`);
    } catch (error) {
      if (!(error instanceof EngineRefusal)) throw error;
      if (error.status === 404) return;
      if (hasImage(volume)) await this.images.mount(Mountpoint).catch(() => {});
      if (error.status !== 409) throw error;
      const message = `The volume ${Name} of the server "${name}" is in use. Stop the containers that use it (docker ps --filter volume=${Name}), then retry the removal.`;
      throw new SwitchboardError('conflict', message, { cause: error });
    }
  }
}

function hasImage({ Labels }: Listed): boolean {
  return Labels?.[volumeLabels.image] !== undefined;
}

/** Engines cannot change the quota of a volume. */
function noteQuota({ Name, Options }: Listed, bytes: number, log: Log): void {
  const size = Number(Options?.size);
  if (size < bytes) log(`The volume ${Name} keeps its original quota of ${formatBytes(size)}.`);
}

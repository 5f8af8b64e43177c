import { createHmac, randomBytes } from 'node:crypto';
import { posix } from 'node:path';
import type { InstanceSpec, Provider } from '../../driver.ts';
import { volumeMount } from './volumes.ts';

/** Whom containers belong to, and what they are run by. */
export interface Installation {
  provider: Provider;
  /** Undefined: the engine's own, runc. */
  runtime: string | undefined;
  owner: string;
}

/** How we find our containers again, and tell them from those of others. */
export const containerLabels = {
  owner: 'dev.switchboard.owner',
  provider: 'dev.switchboard.provider',
  id: 'dev.switchboard.id',
  name: 'dev.switchboard.name',
  project: 'dev.switchboard.project',
  /** Another one where anything about the container would be another. */
  revision: 'dev.switchboard.revision',
} as const;

const TMP = '/tmp';
const TMP_BYTES = 64 * 1024 * 1024;

/** What the engine is asked to create. It holds the environment, so it must be shown to nobody. */
export function containerOptions(spec: InstanceSpec, image: string, installation: Installation) {
  const options = withoutLabels(spec, image, installation);
  return {
    ...options,
    Labels: {
      [containerLabels.owner]: installation.owner,
      [containerLabels.provider]: installation.provider,
      [containerLabels.id]: spec.id,
      [containerLabels.name]: spec.name,
      [containerLabels.project]: spec.project,
      [containerLabels.revision]: createHmac('sha256', installation.owner)
        .update(JSON.stringify([options, spec.limits.diskBytes]))
        .digest('hex'),
    },
  };
}

function withoutLabels(spec: InstanceSpec, image: string, { runtime, provider, owner }: Installation) {
  const { limits, hasStdio, port, hostPort } = spec;
  const volumes = spec.volumes.map((path) => posix.resolve('/', path)).toSorted();
  return {
    Image: image,
    // What stands in the place of the image's entrypoint gets none of its arguments.
    ...(spec.command === undefined ? {} : { Entrypoint: [spec.command] }),
    ...(spec.command === undefined && spec.args.length === 0 ? {} : { Cmd: [...spec.args] }),
    Env: environment(spec),
    OpenStdin: hasStdio,
    // Whoever takes it over has to be able to speak with it too.
    StdinOnce: false,
    AttachStdin: hasStdio,
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    StopSignal: 'SIGTERM',
    ...(port === undefined ? {} : { ExposedPorts: { [`${port}/tcp`]: {} } }),
    HostConfig: {
      ...(runtime === undefined ? {} : { Runtime: runtime }),
      NanoCpus: Math.round(limits.cpus * 1e9),
      Memory: limits.memoryBytes,
      // As much as of memory alone: nothing of it is swapped.
      MemorySwap: limits.memoryBytes,
      ...processLimits(limits.pids, provider),
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
      ReadonlyRootfs: !spec.hasWritableRoot,
      ...(spec.hasWritableRoot || volumes.includes(TMP)
        ? {}
        : { Tmpfs: { [TMP]: `rw,exec,nosuid,nodev,size=${TMP_BYTES},mode=1777` } }),
      Mounts: volumes.map((path) => volumeMount(owner, spec, path)),
      NetworkMode: spec.hasNetwork || port !== undefined ? 'bridge' : 'none',
      ...(port === undefined ? {} : { PortBindings: portBindings(port, hostPort) }),
      // What it says are messages, which are nobody's to keep.
      LogConfig: { Type: 'none', Config: {} },
      // The first process of a container ignores SIGTERM where it does not handle it, and leaves zombies.
      Init: true,
      RestartPolicy: { Name: 'no' },
      AutoRemove: false,
    },
  };
}

/** Without a port of the machine, the engine takes a free one. */
export function portBindings(port: number, hostPort: number | undefined) {
  return { [`${port}/tcp`]: [{ HostIp: '127.0.0.1', HostPort: String(hostPort ?? '') }] };
}

/** A name to be read in lists; nothing depends on it. */
export function containerName({ project, name }: InstanceSpec): string {
  const readable = `${project}-${name}`.replace(/[^a-zA-Z0-9_.-]+/g, '-').slice(0, 80);
  return `switchboard-${readable}-${randomBytes(4).toString('hex')}`;
}

function environment({ environment, port }: InstanceSpec): string[] {
  // The port last: what we publish has to be what the server uses.
  const all = { ...environment, ...(port === undefined ? {} : { PORT: String(port) }) };
  return Object.entries(all)
    .map(([name, value]) => `${name}=${value}`)
    .toSorted();
}

/** A core dump is a copy of all its secrets on the disk. */
const noCoreDumps = { Name: 'core', Soft: 0, Hard: 0 };

/**
 * The control group of a container limits its processes and threads. With gVisor it holds the threads of the sandbox
 * itself: about 60 with one small process inside, and about 2.5 for each task inside. At its limit the whole sandbox dies.
 * So gVisor's own kernel counts the tasks inside, by RLIMIT_NPROC, and a fork over the limit fails; the control group only
 * bounds the sandbox, with room to spare. Elsewhere RLIMIT_NPROC would count the tasks of a user of the machine.
 */
function processLimits(pids: number, provider: Provider) {
  if (provider !== 'gvisor') return { PidsLimit: pids, Ulimits: [noCoreDumps] };
  return { PidsLimit: 256 + 4 * pids, Ulimits: [noCoreDumps, { Name: 'nproc', Soft: pids, Hard: pids }] };
}

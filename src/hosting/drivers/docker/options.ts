import { createHmac, randomBytes } from 'node:crypto';
import { posix } from 'node:path';
import type { Provider } from '../../../config/choices.ts';
import type { InstanceSpec } from '../../driver.ts';
import { volumeMount } from './volumes.ts';

export interface Installation {
  provider: Provider;
  /** Undefined for the engine's default, runc. */
  runtime: string | undefined;
  owner: string;
}

export const containerLabels = {
  owner: 'dev.switchboard.owner',
  provider: 'dev.switchboard.provider',
  id: 'dev.switchboard.id',
  name: 'dev.switchboard.name',
  project: 'dev.switchboard.project',
  /** Changes with every option of the container. */
  revision: 'dev.switchboard.revision',
} as const;

const TMP = '/tmp';
const TMP_BYTES = 64 * 1024 * 1024;

/** Contains secrets, so it must never be shown or logged. */
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
    // A replaced entrypoint must not get the arguments of the image.
    ...(spec.command === undefined ? {} : { Entrypoint: [spec.command] }),
    ...(spec.command === undefined && spec.args.length === 0 ? {} : { Cmd: [...spec.args] }),
    Env: environment(spec),
    OpenStdin: hasStdio,
    // Another Switchboard may adopt the container, and attach again.
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
      // Memory plus swap: an equal limit means no swap.
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
      // The output is MCP messages, which must not be stored.
      LogConfig: { Type: 'none', Config: {} },
      // PID 1 ignores SIGTERM by default, and does not reap zombies.
      Init: true,
      RestartPolicy: { Name: 'no' },
      AutoRemove: false,
    },
  };
}

/** Without a host port the engine picks a free one. */
export function portBindings(port: number, hostPort: number | undefined) {
  return { [`${port}/tcp`]: [{ HostIp: '127.0.0.1', HostPort: String(hostPort ?? '') }] };
}

/** For people only. */
export function containerName({ project, name }: InstanceSpec): string {
  const readable = `${project}-${name}`.replace(/[^a-zA-Z0-9_.-]+/g, '-').slice(0, 80);
  return `switchboard-${readable}-${randomBytes(4).toString('hex')}`;
}

function environment({ environment, port }: InstanceSpec): string[] {
  // PORT overrides the server's own value, because this port is published.
  const all = { ...environment, ...(port === undefined ? {} : { PORT: String(port) }) };
  return Object.entries(all)
    .map(([name, value]) => `${name}=${value}`)
    .toSorted();
}

/** A core dump would write secrets to the disk. */
const noCoreDumps = { Name: 'core', Soft: 0, Hard: 0 };

/**
 * With gVisor the cgroup counts the threads of the sandbox itself, about 60 plus 2.5 for each task inside, and the whole
 * sandbox dies at its limit. So RLIMIT_NPROC, which gVisor's kernel enforces inside, limits the tasks, and the cgroup has
 * room to spare. Elsewhere RLIMIT_NPROC would count all tasks of a user of the machine.
 */
function processLimits(pids: number, provider: Provider) {
  if (provider !== 'gvisor') return { PidsLimit: pids, Ulimits: [noCoreDumps] };
  return { PidsLimit: 256 + 4 * pids, Ulimits: [noCoreDumps, { Name: 'nproc', Soft: pids, Hard: pids }] };
}

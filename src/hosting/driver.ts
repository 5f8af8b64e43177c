import type { Readable, Writable } from 'node:stream';
import type { Provider } from '../config/choices.ts';
import type { Limits } from '../config/limits.ts';
import { SwitchboardError } from '../errors.ts';

/** When Switchboard stops: the time between SIGTERM and SIGKILL. */
export const STOP_GRACE_MS = 30_000;

/** Contains resolved secrets, so it must never be shown or logged. */
export interface InstanceSpec {
  /** The id of its database row, which never changes. */
  id: string;
  /** Unique in its project. */
  name: string;
  project: string;
  image: string | undefined;
  /** Replaces the entrypoint of the image; required by the `process` driver. */
  command: string | undefined;
  args: readonly string[];
  environment: Readonly<Record<string, string>>;
  limits: Limits;
  /** Whether it speaks MCP over stdin and stdout. */
  hasStdio: boolean;
  /** The port that it listens on inside; published on loopback only. */
  port: number | undefined;
  /** The port to publish it at; any free one if undefined. */
  hostPort?: number | undefined;
  /** The port it was last published at, preferred if `hostPort` is undefined. */
  formerHostPort?: number | undefined;
  /** Whether it may use the network. Implied by a port. */
  hasNetwork: boolean;
  /** Each path is a separate volume. */
  volumes: readonly string[];
  hasWritableRoot: boolean;
}

export interface Exit {
  /** Undefined after a signal, or if unknown. */
  code: number | undefined;
  signal: string | undefined;
  /** Such as a memory or disk limit, if known. */
  reason: string | undefined;
  /** The engine was stopped or does not answer. That is not a crash: the server may still run when the engine is back. */
  isLost: boolean;
}

export interface ResourceUsage {
  /** Of one core, since the last call; undefined on the first call. */
  cpuPercent: number | undefined;
  memoryBytes: number;
  diskBytes: number | undefined;
}

export interface InstanceEvents {
  /** A line of its stderr, of its stdout if it has no stdio, or of progress such as an image pull. */
  log(line: string): void;
}

/** One run of a hosted server: a container, a sandbox, a process. */
export interface Instance {
  readonly id: string;
  readonly startedAt: Date;
  /** `output` is exactly its stdout. Both streams end with the instance. */
  readonly stdio: { input: Writable; output: Readable } | undefined;
  /** Such as http://127.0.0.1:49153 */
  readonly url: string | undefined;
  /** Never rejects. */
  readonly exited: Promise<Exit>;
  /** SIGTERM, then SIGKILL after the grace period. Resolves when everything but its volumes is removed. */
  stop(graceMs: number): Promise<void>;
  usage(): Promise<ResourceUsage>;
  /** Detaches and leaves it running, to be adopted. Only for drivers with survivors. */
  release?(): void;
}

export interface Driver {
  readonly provider: Provider;
  /** Undefined if it can be used now; otherwise the reason and what to do about it. */
  unavailable(): Promise<string | undefined>;
  /** Resolves when the instance runs. Rejects with a SwitchboardError that says what to do. */
  start(spec: InstanceSpec, events: InstanceEvents, signal: AbortSignal): Promise<Instance>;
  /** Gets what a start needs, such as an image, while the old instance still runs. Rejects like `start`. */
  prepare?(spec: InstanceSpec, events: InstanceEvents, signal: AbortSignal): Promise<void>;
  readonly survivors?: Survivors;
  readonly volumes?: Volumes;
}

export interface Survivors {
  /** Returns the running instance if it was started with the same spec. Removes other instances of this server. */
  adopt(spec: InstanceSpec, events: InstanceEvents): Promise<Instance | undefined>;
  /** Removes this installation's instances of all other servers, and returns their ids. */
  reap(ids: readonly string[]): Promise<string[]>;
}

export interface Volumes {
  /** The provider's names: volumes of the engine, or folders. */
  list(server: Pick<InstanceSpec, 'name' | 'project'>): Promise<string[]>;
  /** Returns the names of the removed volumes. */
  remove(server: Pick<InstanceSpec, 'name' | 'project'>): Promise<string[]>;
}

export class CpuMeter {
  private last: { cpuMs: number; atMs: number } | undefined;

  /** Percent of one core since the last call. The total may drop when a process of a group exits. */
  percent(cpuMs: number, atMs: number): number | undefined {
    const { last } = this;
    this.last = { cpuMs, atMs };
    if (last === undefined || atMs <= last.atMs) return undefined;
    return Math.max(0, (100 * (cpuMs - last.cpuMs)) / (atMs - last.atMs));
  }
}

/** Retryable, because the port may become free. */
export function portInUse(server: string, port: number): SwitchboardError {
  return new SwitchboardError(
    'server_start_failed',
    `Port ${port} of this machine is in use, so the server "${server}" cannot be published there: stop what listens on it, or choose another port (\`port.host\`; switchboard hosted set ${server} --port …).`,
  );
}

export function formatBytes(bytes: number): string {
  const megabytes = bytes / 1024 ** 2;
  return megabytes < 1024 ? `${rounded(megabytes)} MB` : `${rounded(megabytes / 1024)} GB`;
}

function rounded(amount: number): number {
  return Math.round(amount * 10) / 10;
}

import type { Readable, Writable } from 'node:stream';

/** What runs a hosted server, from the most to the least isolated. */
export const providers = ['gvisor', 'firecracker', 'e2b', 'docker', 'process'] as const;
export type Provider = (typeof providers)[number];

/** What an instance may use. */
export interface Limits {
  /** Cores: 0.5 is half of one. */
  cpus: number;
  memoryBytes: number;
  diskBytes: number;
  pids: number;
}

/** What is to be run. Secrets are in place of their references already, so it must be shown to nobody. */
export interface InstanceSpec {
  /** The id of its row; the same at every start. */
  id: string;
  /** Unique in its project. */
  name: string;
  project: string;
  image: string | undefined;
  /** In the place of what the image says; what the `process` driver runs. */
  command: string | undefined;
  args: readonly string[];
  environment: Readonly<Record<string, string>>;
  limits: Limits;
  /** Whether we speak with it over its stdin and stdout. */
  hasStdio: boolean;
  /** The port inside on which it serves; it is published on loopback only. */
  port: number | undefined;
  /** Where it has to be published; undefined: anywhere. */
  hostPort?: number | undefined;
  /** Where it was published last, and is again if that is free and nothing else is asked for. */
  formerHostPort?: number | undefined;
  /** Whether it may reach the network. A port brings a network along. */
  hasNetwork: boolean;
  /** Paths inside that are kept: each is a volume of the server's own. */
  volumes: readonly string[];
  /** Whether it may write to the rest of its file system. */
  hasWritableRoot: boolean;
}

export interface Exit {
  /** Undefined where nobody knows it: it was ended by a signal, or is gone. */
  code: number | undefined;
  signal: string | undefined;
  /** Why, where more is known than a code: the limit of memory, of disk. */
  reason: string | undefined;
  /**
   * What ran it is away: the engine was stopped or does not answer. That is no crash of the server, which may be there
   * again when the engine is.
   */
  isLost: boolean;
}

export interface Usage {
  /** Of one core, since the last question; undefined with the first one. */
  cpuPercent: number | undefined;
  memoryBytes: number;
  diskBytes: number | undefined;
}

/** What an instance says while it runs. */
export interface InstanceEvents {
  /** A line of its stderr; without stdio also of its stdout; or of what is done to it, such as the progress of a pull. */
  log(line: string): void;
}

/** One run of a hosted server: a container, a sandbox, a process. */
export interface Instance {
  /** What the provider calls it. */
  readonly id: string;
  readonly startedAt: Date;
  /** Where it has stdio. What comes out of `output` is exactly its stdout. Both end with it. */
  readonly stdio: { input: Writable; output: Readable } | undefined;
  /** Where its port is published: http://127.0.0.1:49153 */
  readonly url: string | undefined;
  /** Settles once, when it runs no more. Never rejects. */
  readonly exited: Promise<Exit>;
  /** SIGTERM, and SIGKILL where it is not gone after that time. Settles when nothing of it is left but its volumes. */
  stop(graceMs: number): Promise<void>;
  usage(): Promise<Usage>;
  /** Lets go of it and leaves it running, for whoever adopts it next. Only where the driver adopts. */
  release?(): void;
}

/** How servers are run. What not every driver can do is a property of its own that may be missing. */
export interface Driver {
  readonly provider: Provider;
  /** Undefined where it can be used now; else why not, and what to do about it. */
  unavailable(): Promise<string | undefined>;
  /** Settles when it runs. Fails with a SwitchboardError that says what to do. */
  start(spec: InstanceSpec, events: InstanceEvents, signal: AbortSignal): Promise<Instance>;
  /**
   * Gets what a start would need and may not be had, such as an image, while another instance still runs. Fails as `start`
   * would.
   */
  prepare?(spec: InstanceSpec, events: InstanceEvents, signal: AbortSignal): Promise<void>;
  /** For what outlives us. */
  readonly survivors?: Survivors;
  /** For what outlives its server. */
  readonly volumes?: Volumes;
}

export interface Survivors {
  /**
   * Takes over the one that runs for this spec, if there is one, and it was started with the same spec; else undefined.
   * What is left of it otherwise is removed.
   */
  adopt(spec: InstanceSpec, events: InstanceEvents): Promise<Instance | undefined>;
  /** Removes what is ours and runs for none of these ids. Never touches what is not ours. Gives what was removed. */
  reap(ids: readonly string[]): Promise<string[]>;
}

export interface Volumes {
  /** What the provider calls those of this server: names of the engine, or folders. */
  list(server: Pick<InstanceSpec, 'name' | 'project'>): Promise<string[]>;
  /** Removes those of this server, of a name and a project as in the spec. Gives their names. */
  remove(server: Pick<InstanceSpec, 'name' | 'project'>): Promise<string[]>;
}

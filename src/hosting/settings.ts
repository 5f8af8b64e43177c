/** What less isolation than a sandbox there may be for servers that name no provider. */
export type LesserProvider = 'docker' | 'process';

/** How servers are hosted: from the configuration file, with nothing left out. */
export interface HostingSettings {
  /** Where the Docker engine listens: the path of a socket, or tcp://127.0.0.1:2375 */
  engine: string;
  /** What the engine calls the runtimes that isolate. */
  runtimes: { gvisor: string; firecracker?: string | undefined };
  allow: readonly LesserProvider[];
  /** Whether new volumes may be kept in images that are mounted, where the engine cannot limit them. */
  volumeImages: boolean;
  callTimeoutMs: number;
  heartbeatMs: number;
  heartbeatTimeoutMs: number;
}

/** Between SIGTERM and SIGKILL, when Switchboard stops. */
export const STOP_GRACE_MS = 30_000;

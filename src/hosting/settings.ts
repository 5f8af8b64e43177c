import type { BackoffRule } from '../channels/backoff.ts';
import type { RestartRules } from './restart-policy.ts';

/** Providers that isolate less than a sandbox. */
export type LesserProvider = 'docker' | 'process';

/** The hosting section of the configuration, complete. */
export interface HostingSettings {
  /** Where the Docker engine listens: the path of a socket, or tcp://127.0.0.1:2375 */
  engine: string;
  /** The engine's names for the sandbox runtimes. */
  runtimes: { gvisor: string; firecracker?: string | undefined };
  /** What servers that name no provider may use. */
  allow: readonly LesserProvider[];
  /** Whether new volumes may be mounted images if the engine cannot limit their size. */
  volumeImages: boolean;
  callTimeoutMs: number;
  heartbeatMs: number;
  heartbeatTimeoutMs: number;
}

/** Between SIGTERM and SIGKILL when Switchboard stops. */
export const STOP_GRACE_MS = 30_000;

export interface Timing {
  restarts: RestartRules;
  /** Between SIGTERM and SIGKILL when Switchboard stops. */
  stopGraceMs: number;
  /** The same when only this server stops or restarts. */
  restartGraceMs: number;
  /** How long `attach` waits for a start. */
  attachMs: number;
  /** Between checks of an unavailable driver. */
  away: BackoffRule;
}

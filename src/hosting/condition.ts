import type { InstanceSpec, Provider } from './driver.ts';

export type RestartPolicy = 'always' | 'on-failure' | 'never';

/** A registered server. */
export interface HostedServer {
  id: string;
  name: string;
  project: string;
  /** The provider that the registration names, or that ran it before. */
  provider: Provider | undefined;
  /** Set if the registration names no provider, and `provider` ran it before. */
  former?: Former | undefined;
  restartPolicy: RestartPolicy;
  enabled: boolean;
  /** Called at every start, resolves secrets. Throws a SwitchboardError if one is missing. */
  spec(): InstanceSpec;
  /** Changes whenever the server must be restarted. */
  revision: string;
  /** What was stored. Only read when the server is first applied. */
  memory: Memory;
}

export interface Former {
  hasVolumes: boolean;
}

/** What is stored of a server, for the next start of Switchboard. */
export interface Memory {
  /** Restarts after a crash, since the last manual restart. */
  restarts: number;
  lastCrash: LastCrash | null;
  /** Times of the crashes that may still count. */
  crashes: string[];
  /** Of the backoff; 0 for none. */
  step: number;
  /** Where its port was last published on this machine. */
  hostPort?: number | undefined;
}

export interface LastCrash {
  at: string;
  exit_code: number | null;
  signal: string | null;
  reason: string;
}

export type HostedStatus =
  /** It starts, or runs and has not completed the MCP handshake. */
  | 'starting'
  /** It runs and speaks MCP. */
  | 'ready'
  /** It runs, but does not answer the heartbeat or the handshake. */
  | 'unresponsive'
  /** It restarts within seconds. */
  | 'restarting'
  /** It is in a crash loop, or its start failed several times. */
  | 'backing_off'
  /** Its driver is unavailable. */
  | 'waiting'
  | 'stopped'
  /** It cannot start until something changes. */
  | 'failed';

export interface Condition {
  status: HostedStatus;
  since: Date;
  reason: string | undefined;
  nextTry: Date | undefined;
  provider: Provider | undefined;
  instanceId: string | undefined;
  startedAt: Date | undefined;
  url: string | undefined;
  memory: Memory;
}

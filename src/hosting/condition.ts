import type { InstanceSpec, Provider } from './driver.ts';
import type { RestartPolicy } from './restart-policy.ts';

/** What there is to run: a row, and what it needs. */
export interface HostedServer {
  id: string;
  name: string;
  project: string;
  /** What the registration asked for, or what ran it before. */
  provider: Provider | undefined;
  /** Where it asked for none, and this is what ran it before. */
  former?: Former | undefined;
  restartPolicy: RestartPolicy;
  enabled: boolean;
  /** Read at every start, with secrets in place. Throws a SwitchboardError where one is missing. */
  spec(): InstanceSpec;
  /** Another one where it has to be started anew: what it is made of, as a text. */
  revision: string;
  /** What was remembered of it. Only looked at when it is first told of. */
  memory: Memory;
}

/** What is known of the provider that nobody asked for: it ran the server before. */
export interface Former {
  hasVolumes: boolean;
}

/** What is kept of a server when Switchboard itself is started again. */
export interface Memory {
  /** How often it was started again after a crash, since it was last restarted by hand. */
  restarts: number;
  lastCrash: LastCrash | null;
  /** Times of the last crashes that may still count. */
  crashes: string[];
  /** Of the backoff; 0: none. */
  step: number;
  /** The port of this machine that it was last published at. */
  hostPort?: number | undefined;
}

export interface LastCrash {
  at: string;
  exit_code: number | null;
  signal: string | null;
  reason: string;
}

export type HostedStatus =
  /** It is being started, or runs and has not completed the MCP handshake. */
  | 'starting'
  /** It runs and speaks MCP. */
  | 'ready'
  /** It runs, and does not answer the heartbeat or the handshake. */
  | 'unresponsive'
  /** It is started again within seconds. */
  | 'restarting'
  /** A crash loop. */
  | 'backing_off'
  /** What runs it is away. */
  | 'waiting'
  | 'stopped'
  /** It cannot be started before something is changed. */
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

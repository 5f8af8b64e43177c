import type { Hosts } from '../channels/hosted.ts';
import type { ChildRecord } from '../channels/stdio.ts';
import type { ServerConfig, ServerTransport, Settings } from '../config.ts';
import type { RecoveryPolicy } from './condition.ts';
import type { Self } from './handshake.ts';

export interface Project {
  readonly id: string;
  readonly name: string;
}

export interface ConnectionSettings extends Self {
  connectTimeoutMs: number;
  maxMessageBytes: number;
  /** How many calls may be queued for one connection. */
  queueLimit: number;
  recovery: RecoveryPolicy;
  /** Resolves `${VAR}` in a server's configuration. */
  variable(name: string, server: ServerConfig): string | undefined;
  /** Called with the resolved transport before a server is started or connected. */
  given(transport: ServerTransport, server: ServerConfig): void;
  /** Masks secrets in a text. */
  redact(text: string): string;
  /** Records the processes of servers. */
  children: ChildRecord;
  /** Runs hosted servers. */
  hosts: Hosts;
}

/** Limits for one list of a server. */
export interface ListSettings {
  listItems: number;
  listBytes: number;
}

export interface ReplicaSettings extends ConnectionSettings {
  project: Project;
  /** This many failed calls in a row eject the replica for a while; 0: never. */
  ejectAfter: number;
  ejectMs: number;
  lists: ListSettings;
}

type Limits = Pick<
  ReplicaSettings,
  'connectTimeoutMs' | 'maxMessageBytes' | 'queueLimit' | 'recovery' | 'ejectAfter' | 'ejectMs' | 'lists'
>;

export function limitsOf(settings: Settings): Limits {
  const { connectTimeoutMs, maxMessageBytes, queueLimit, ejectAfter, ejectMs } = settings;
  const { backoffFirstMs: firstMs, backoffMaxMs: maxMs, breakerFailures, breakerOpenMs } = settings;
  return {
    ...{ connectTimeoutMs, maxMessageBytes, queueLimit, ejectAfter, ejectMs },
    lists: { listItems: settings.maxListItems, listBytes: settings.maxListBytes },
    recovery: { backoff: { firstMs, maxMs }, breakerFailures, breakerOpenMs },
  };
}

import type { Hosts } from '../channels/hosted.ts';
import type { ChildRecord } from '../channels/stdio.ts';
import type { ServerConfig, ServerTransport, Settings } from '../config.ts';
import type { RecoveryPolicy } from './condition.ts';
import type { Self } from './handshake.ts';

/** Whose servers these are. */
export interface Project {
  readonly id: string;
  readonly name: string;
}

export interface ConnectionSettings extends Self {
  connectTimeoutMs: number;
  maxMessageBytes: number;
  /** How many calls may wait for a slot of one connection. */
  queueLimit: number;
  recovery: RecoveryPolicy;
  /** Where `${VAR}` in a server's configuration comes from. */
  variable(name: string, server: ServerConfig): string | undefined;
  /** What a server is about to be reached or started with, all variables filled in. */
  given(transport: ServerTransport, server: ServerConfig): void;
  /** Takes secrets out of a text that somebody may read. */
  redact(text: string): string;
  /** Where the processes of servers are noted. */
  children: ChildRecord;
  /** Who runs those that we host. */
  hosts: Hosts;
}

/** How much of one list of a server is taken. */
export interface ListSettings {
  listItems: number;
  listBytes: number;
}

export interface ReplicaSettings extends ConnectionSettings {
  project: Project;
  /** So many failed calls in a row, and the replica is left out for a while; 0: never. */
  ejectAfter: number;
  ejectMs: number;
  /** How much of each of its lists is taken. */
  lists: ListSettings;
}

type Limits = Pick<
  ReplicaSettings,
  'connectTimeoutMs' | 'maxMessageBytes' | 'queueLimit' | 'recovery' | 'ejectAfter' | 'ejectMs' | 'lists'
>;

/** What the settings say of servers, wherever they run. */
export function limitsOf(settings: Settings): Limits {
  const { connectTimeoutMs, maxMessageBytes, queueLimit, ejectAfter, ejectMs } = settings;
  const { backoffFirstMs: firstMs, backoffMaxMs: maxMs, breakerFailures, breakerOpenMs } = settings;
  return {
    ...{ connectTimeoutMs, maxMessageBytes, queueLimit, ejectAfter, ejectMs },
    lists: { listItems: settings.maxListItems, listBytes: settings.maxListBytes },
    recovery: { backoff: { firstMs, maxMs }, breakerFailures, breakerOpenMs },
  };
}

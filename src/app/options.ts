import type { ServerEvent, ServerView } from '../api/views.ts';
import type { Configuration, ServerConfig, Settings } from '../config.ts';
import type { Waiting } from './drain.ts';

export interface AppOptions {
  configPath: string;
  host: string;
  port: number;
  home: string;
  /** These override the settings of the same names. */
  auth?: boolean;
  publicUrl?: string;
  tls?: { cert: string; key: string };
  trustedProxies?: string[];
  /** Without a database, the configuration file is the only source. */
  database:
    | { mode: 'none' }
    | { mode: 'embedded'; secretKey: string | undefined }
    | { mode: 'server'; url: string; secretKey: string | undefined };
  /** Overrides the configuration of all servers. */
  startup?: ServerConfig['startup'];
  /** Overrides the setting. */
  onStartFailure?: Settings['onStartFailure'];
  /** Reports `idle` when there has been no client for this long. */
  exitWhenIdleMs?: number;
  /** Aborts the start. */
  signal?: AbortSignal;
  /** Kills all child processes at once, for when there is no time to stop. */
  killSignal?: AbortSignal;
}

export interface AppEvents {
  progressed(message: string): void;
  /** `publicUrl`: the address that clients use; `auth`: whether every request needs a key. */
  listening(url: string, access: { publicUrl?: string | undefined; auth: boolean }): void;
  /** `from` equals the current state if only the offer has changed. */
  serverChanged(event: ServerEvent): void;
  configApplied(started: string[], changed: string[], stopped: string[]): void;
  warned(message: string): void;
  idle(): void;
  waiting(what: Waiting): void;
}

export interface App {
  /** The base URL, without a path. */
  url: string;
  servers(): ServerView[];
  /** `graceMs` is for calls in flight; the default is the setting shutdownGraceMs. */
  stop(graceMs?: number): Promise<void>;
}

export function withOverrides(configuration: Configuration, { onStartFailure }: AppOptions): Configuration {
  if (onStartFailure === undefined) return configuration;
  return { ...configuration, settings: { ...configuration.settings, onStartFailure } };
}

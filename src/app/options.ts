import type { ServerEvent, ServerView } from '../api/views.ts';
import type { Configuration, ServerConfig, Settings } from '../config.ts';
import type { Waiting } from './drain.ts';

export interface AppOptions {
  configPath: string;
  host: string;
  port: number;
  /** SWITCHBOARD_HOME. */
  home: string;
  /** Without one, there is only the configuration file. */
  database:
    | { mode: 'none' }
    | { mode: 'embedded'; secretKey: string | undefined }
    | { mode: 'server'; url: string; secretKey: string | undefined };
  /** Overrides how every server starts. */
  startup?: ServerConfig['startup'];
  /** Overrides what happens when a server fails that starts with Switchboard. */
  onStartFailure?: Settings['onStartFailure'];
  /** Reports `idle` when there has been no client for this long. */
  exitWhenIdleMs?: number;
  /** Aborts the start. */
  signal?: AbortSignal;
  /** Kills all child processes at once, for when there is no time to stop. */
  killSignal?: AbortSignal;
}

/** For the command line to show. */
export interface AppEvents {
  /** The start takes long. */
  progressed(message: string): void;
  listening(url: string): void;
  /** `from` is the current state if only the offer has changed. */
  serverChanged(event: ServerEvent): void;
  configApplied(started: string[], changed: string[], stopped: string[]): void;
  warned(message: string): void;
  idle(): void;
  /** The stop waits for this. */
  waiting(what: Waiting): void;
}

export interface App {
  /** The base address, without a path. */
  url: string;
  servers(): ServerView[];
  /** `graceMs`: for calls in flight; by default the setting shutdownGraceMs. */
  stop(graceMs?: number): Promise<void>;
}

/** The configuration of the file, with the overrides of the command line. */
export function withOverrides(configuration: Configuration, { onStartFailure }: AppOptions): Configuration {
  if (onStartFailure === undefined) return configuration;
  return { ...configuration, settings: { ...configuration.settings, onStartFailure } };
}

import type { ServerEvent, ServerView } from '../api/views.ts';
import type { Configuration, ServerConfig, Settings } from '../config.ts';
import type { Waiting } from './drain.ts';

export interface AppOptions {
  configPath: string;
  host: string;
  port: number;
  /** The folder of this user's Switchboards. */
  home: string;
  /** Where projects are kept. Without one there is only what the configuration file says. */
  database:
    | { mode: 'none' }
    | { mode: 'embedded'; secretKey: string | undefined }
    | { mode: 'server'; url: string; secretKey: string | undefined };
  /** Overrides how every server starts. */
  startup?: ServerConfig['startup'];
  /** Overrides what happens when a server fails that starts with Switchboard. */
  onStartFailure?: Settings['onStartFailure'];
  /** Stops by itself when no client has been there for this long. */
  exitWhenIdleMs?: number;
  /** Ends a start that is under way. */
  signal?: AbortSignal;
  /** Ends every process that was started, at once, also during the start. For when there is no time to stop. */
  killSignal?: AbortSignal;
}

/** What happens, for whoever shows it to the user. */
export interface AppEvents {
  /** Something takes its time. */
  progressed(message: string): void;
  /** Clients are served from now on. */
  listening(url: string): void;
  /** `from` is the state of now where only what the server offers has changed. */
  serverChanged(event: ServerEvent): void;
  configApplied(started: string[], changed: string[], stopped: string[]): void;
  warned(message: string): void;
  idle(): void;
  /** A stop takes its time, because of this. */
  waiting(what: Waiting): void;
}

export interface App {
  /** The base address, without a path. */
  url: string;
  servers(): ServerView[];
  /** Calls under way may take so long, or else as long as the settings say. */
  stop(graceMs?: number): Promise<void>;
}

/** The configuration of the file, with what the command line says instead. */
export function withOverrides(configuration: Configuration, { onStartFailure }: AppOptions): Configuration {
  if (onStartFailure === undefined) return configuration;
  return { ...configuration, settings: { ...configuration.settings, onStartFailure } };
}

/** How one MCP server is reached, as configured; `${VAR}` references are still in it. */
export type ServerTransport =
  | { type: 'stdio'; command: string; args: string[]; env: Record<string, string>; cwd: string }
  | { type: 'http' | 'sse'; url: string; headers: Record<string, string> };

export interface ServerConfig {
  /** Unique; what users call it. */
  name: string;
  transport: ServerTransport;
  enabled: boolean;
  /** Shown in front of this server's names instead of its own name. */
  prefix?: string;
  startup: 'lazy' | 'parallel';
  isolation: 'shared' | 'session';
}

type NamingMode = 'on-conflict' | 'always' | 'last-wins';

/** The top-level `switchboard` object of a configuration file, with its defaults filled in. */
export interface Settings {
  naming: NamingMode;
  separator: string;
  /** How long the first list over servers never seen waits for them. */
  discoveryWaitMs: number;
  /** Items in a page of a list; 0 puts all of them in one page. */
  pageSize: number;
  /** How long starting a server and shaking hands with it may take. */
  connectTimeoutMs: number;
  maxMessageBytes: number;
  maxSessions: number;
  sessionIdleMs: number;
  /** How often a silent stream is written to; an answer that takes longer than this becomes a stream. */
  keepAliveMs: number;
}

export interface Configuration {
  servers: ServerConfig[];
  settings: Settings;
}

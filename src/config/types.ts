import type { ToolChoice } from './tool-patterns.ts';

/** How one MCP server is reached, as configured; `${VAR}` references are still in it. */
export type ServerTransport =
  | { type: 'stdio'; command: string; args: string[]; env: Record<string, string>; cwd: string }
  | { type: 'http' | 'sse'; url: string; headers: Record<string, string> }
  /** One that we run ourselves, in a container or the like. */
  | { type: 'hosted'; id: string };

export interface ServerConfig {
  /** Unique; what users call it. */
  name: string;
  transport: ServerTransport;
  enabled: boolean;
  /** Shown in front of this server's names instead of its own name. */
  prefix?: string;
  /** On first use, or with Switchboard: one after the other, or all at once. */
  startup: 'lazy' | 'sequential' | 'parallel';
  isolation: 'shared' | 'session';
  /** The only era that it is connected in; `auto` is each client's own, as far as it speaks both. */
  era: 'auto' | 'legacy' | 'modern';
  /** Servers of one group offer the same tools and share the load. */
  group?: string;
  /** How many instances of it run. */
  replicas: number;
  /** What clients can prefer it by. */
  labels: Record<string, string>;
  /** How many calls each replica works on at a time. */
  concurrency: number;
  /** How long a call may take, and how long it may take while it tells progress. */
  timeoutMs: number;
  maxTimeoutMs: number;
  /** After how long without a call it is stopped; 0 is never. */
  idleStopMs: number;
  /** Which of its tools are offered, where that is not all of them. */
  tools?: ToolChoice;
  /** The project that it is kept in: what `${VAR}` stands for is then never taken from our own environment. */
  project?: string;
  /** The secrets of its project that it refers to, and which version of each; it is started anew for another one. */
  secrets?: Record<string, string>;
}

/** What holds for servers that do not say. */
export type ServerDefaults = Pick<
  ServerConfig,
  'startup' | 'concurrency' | 'timeoutMs' | 'maxTimeoutMs' | 'idleStopMs'
>;

type NamingMode = 'on-conflict' | 'always' | 'last-wins';

/** The top-level `switchboard` object of a configuration file, with its defaults filled in. */
export interface Settings {
  naming: NamingMode;
  /** Whether names of tools and prompts are made to fit the APIs of all models, in the project `default`. */
  names: 'model-safe' | 'as-is';
  separator: string;
  /** How long the first list over servers never seen waits for them. */
  discoveryWaitMs: number;
  /** Items in a page of a list; 0 puts all of them in one page. */
  pageSize: number;
  /** How long starting a server and shaking hands with it may take. */
  connectTimeoutMs: number;
  maxMessageBytes: number;
  /** What is kept of events for clients that lost their connection, and how long those of a stream that has ended. */
  maxReplayBytes: number;
  replayMs: number;
  /** Who on this machine may use MCP without a token. */
  localAccess: 'user' | 'everyone';
  /** Whether servers that we run as processes get our proxies and certificate authorities. */
  inheritNetwork: boolean;
  /** Other origins than our own whose pages may use us. */
  allowedOrigins: string[];
  /** How much of one list of a server is taken: tools, resources, templates, prompts. */
  maxListItems: number;
  maxListBytes: number;
  /** How much is taken of what all servers offer together. */
  maxCatalogItems: number;
  /** How much clients are told of what all servers tell models of themselves. */
  maxInstructionsBytes: number;
  /** How many connections clients may have, and how long one may send or take next to nothing while more is awaited. */
  maxConnections: number;
  slowClientMs: number;
  maxSessions: number;
  sessionIdleMs: number;
  /** How many calls may wait for clients that were asked for something, and how long those may take. */
  maxHeldCalls: number;
  inputWaitMs: number;
  /** How often a silent stream is written to; an answer that takes longer than this becomes a stream. */
  keepAliveMs: number;
  /** How long calls under way may take when Switchboard stops; 0 ends them at once. */
  shutdownGraceMs: number;
  /** How many calls may wait for one replica. */
  queueLimit: number;
  /** Whether Switchboard ends when a server fails that starts with it. */
  onStartFailure: 'continue' | 'abort';
  /** How long to wait before a lost server is tried again: at first, and at most. */
  backoffFirstMs: number;
  backoffMaxMs: number;
  /** So many failed tries in a row open the breaker, for so long. */
  breakerFailures: number;
  breakerOpenMs: number;
  /** So many failed calls in a row leave a replica of a group out, for so long; 0 is never. */
  ejectAfter: number;
  ejectMs: number;
  hosting: HostingSettings;
  chat: ChatSettings;
}

/** How chats reach a model. */
export interface ChatSettings {
  /** Another address than Anthropic's own. */
  baseUrl?: string | undefined;
  /** The model of chats that name none. */
  model: string;
}

/** What runs hosted servers, and how they are looked after. */
export interface HostingSettings {
  /** Where the Docker engine listens. */
  engine?: string | undefined;
  /** What the engine calls the runtimes that isolate more than its own. */
  runtimes: { gvisor: string; firecracker?: string | undefined };
  /** What may be taken, where nothing better is there, without being asked for by name. */
  allow: ('docker' | 'process')[];
  /** Whether the volumes of containers may be kept in images that are mounted, which limits them. */
  volumeImages: boolean;
  callTimeoutMs: number;
  heartbeatMs: number;
  heartbeatTimeoutMs: number;
}

export interface Configuration {
  servers: ServerConfig[];
  settings: Settings;
  /** What holds for servers that do not say, wherever they are written down. */
  defaults: ServerDefaults;
}

import type { eras, isolations, startups } from './choices.ts';
import type { ToolChoice } from './tool-patterns.ts';

/** Contains unresolved `${VAR}` references. */
export type ServerTransport =
  | { type: 'stdio'; command: string; args: string[]; env: Record<string, string>; cwd: string }
  | { type: 'http' | 'sse'; url: string; headers: Record<string, string> }
  | { type: 'hosted'; id: string };

export interface ServerConfig {
  /** Unique in its project. */
  name: string;
  transport: ServerTransport;
  enabled: boolean;
  /** Replaces the server's name in front of its tools. */
  prefix?: string;
  /** On first use, or with Switchboard: sequentially or in parallel. */
  startup: (typeof startups)[number];
  isolation: (typeof isolations)[number];
  /** The protocol era of its connections; with `auto`, that of each client if the server supports both. */
  era: (typeof eras)[number];
  /** Servers of a group offer the same tools and share the load. */
  group?: string;
  replicas: number;
  /** Clients can prefer servers by label. */
  labels: Record<string, string>;
  /** How many calls each replica handles at a time. */
  concurrency: number;
  /** The timeout of a call, and its maximum while the call reports progress. */
  timeoutMs: number;
  maxTimeoutMs: number;
  /** How long the server may be idle before it is stopped; 0 means never. */
  idleStopMs: number;
  /** Undefined offers all tools. */
  tools?: ToolChoice;
  /** The project that stores it. Its `${VAR}` references are never resolved from our environment. */
  project?: string;
  /** The versions of the project's secrets that it uses; it restarts when one changes. */
  secrets?: Record<string, string>;
}

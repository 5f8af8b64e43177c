import type { eras, isolations, startups } from './choices.ts';
import type { ToolChoice } from './tool-patterns.ts';

/** How one MCP server is reached, as configured; `${VAR}` references are still in it. */
export type ServerTransport =
  | { type: 'stdio'; command: string; args: string[]; env: Record<string, string>; cwd: string }
  | { type: 'http' | 'sse'; url: string; headers: Record<string, string> }
  /** One that Switchboard runs itself. */
  | { type: 'hosted'; id: string };

export interface ServerConfig {
  /** Unique in its project. */
  name: string;
  transport: ServerTransport;
  enabled: boolean;
  /** Used in front of this server's names instead of its own name. */
  prefix?: string;
  /** On first use, or with Switchboard: one after the other, or all at once. */
  startup: (typeof startups)[number];
  isolation: (typeof isolations)[number];
  /** The only era to connect in; `auto` is each client's own, if the server speaks both. */
  era: (typeof eras)[number];
  /** Servers of one group offer the same tools and share the load. */
  group?: string;
  replicas: number;
  /** What clients can prefer it by. */
  labels: Record<string, string>;
  /** How many calls each replica handles at a time. */
  concurrency: number;
  /** How long a call may take, and how long it may take while it reports progress. */
  timeoutMs: number;
  maxTimeoutMs: number;
  /** How long it may be idle before it is stopped; 0 is never. */
  idleStopMs: number;
  /** Which of its tools are offered; undefined is all. */
  tools?: ToolChoice;
  /** The project that stores it: its `${VAR}` references are then never filled from our environment. */
  project?: string;
  /** The versions of the project's secrets that it refers to; it is restarted when one changes. */
  secrets?: Record<string, string>;
}

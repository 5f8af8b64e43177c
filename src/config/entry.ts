import type { eras, isolations, startups } from './choices.ts';
import type { ToolChoice } from './tool-patterns.ts';

/** A server in `mcpServers` of any program's file. Not inferred from the schema, because it is part of the public types. */
export type ServerEntry = {
  type?: 'stdio' | 'http' | 'streamable-http' | 'streamableHttp' | 'sse' | undefined;
  command?: string | undefined;
  args?: string[] | undefined;
  env?: Record<string, string> | undefined;
  cwd?: string | undefined;
  url?: string | undefined;
  headers?: Record<string, string> | undefined;
  prefix?: string | undefined;
  enabled?: boolean | undefined;
  disabled?: boolean | undefined;
  startup?: (typeof startups)[number] | undefined;
  isolation?: (typeof isolations)[number] | undefined;
  era?: (typeof eras)[number] | undefined;
  group?: string | undefined;
  replicas?: number | undefined;
  labels?: Record<string, string> | undefined;
  concurrency?: number | undefined;
  timeoutMs?: number | undefined;
  maxTimeoutMs?: number | undefined;
  idleStopMs?: number | undefined;
  tools?: ToolChoice | undefined;
};

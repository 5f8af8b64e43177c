import type { ServerView } from '../app.ts';

/** What the commands read of the API's answers. */

export interface ProjectView {
  id: string;
  name: string;
  description: string | null;
  record_payloads: boolean;
  retention_days: number | null;
  names: 'model-safe' | 'as-is';
  server_count: number;
  version: number;
  created_at: string;
}

/** How a server is reached. */
export interface ReachView {
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  url?: string;
  headers?: Record<string, string>;
}

/** Of either kind: what the other kind has is not there. */
export type ServerDetails = ServerView & { config: ReachView };

export interface ServerTest {
  ok: boolean;
  duration_ms: number;
  error: string | null;
  tools: number | null;
  resources: number | null;
  prompts: number | null;
  server_info: { name?: string; version?: string } | null;
}

export interface ToolView {
  name: string;
  /** Under this name it can be called whether it is listed under it or not. */
  qualified_name: string;
  server: string;
  /** The server's own name for it. */
  tool: string;
  description: string | null;
  enabled: boolean;
  input_schema: unknown;
}

export interface SecretView {
  name: string;
  updated_at: string;
  used_by: string[];
}

export interface ProductView {
  name: string;
  version: string;
  servers: string[];
  updated_at: string;
}

export interface Installation {
  moved_secrets?: string[] | undefined;
  product: ProductView;
  added: string[];
  changed: string[];
  removed: string[];
  unchanged: string[];
}

export interface HostedView {
  moved_secrets?: string[] | undefined;
  id: string;
  project: string;
  name: string;
  image: string | null;
  command: string | null;
  args: string[];
  stdio_bridge: boolean;
  restart_policy: string;
  /** Names only. */
  environment: string[];
  port: number | null;
  path: string;
  network: boolean;
  volumes: string[];
  resource_limits: { cpu: string; memory: string; disk: string; pids: number };
  provider: string | null;
  requested_provider: string | null;
  provider_workspace_id: string | null;
  status: string;
  error: string | null;
  next_try: string | null;
  uptime_seconds: number | null;
  restart_count: number;
  last_crash: { at: string; reason: string } | null;
  health: string;
  url: string | null;
  usage: {
    cpu_percent: number | null;
    memory_bytes: number;
    memory_limit_bytes: number;
    disk_bytes: number | null;
  } | null;
  tool_count: number | null;
  enabled: boolean;
  /** Undefined where an older Switchboard answers. */
  volume_names?: string[] | null;
}

export interface HostedLine {
  at: string;
  line: string;
}

export interface CallView {
  id: string;
  client: string | null;
  method: string;
  server: string | null;
  replica: number | null;
  tool: string | null;
  status: string;
  duration_ms: number;
  input_bytes: number;
  output_bytes: number;
  error: { code: string; message: string } | null;
  created_at: string;
}

export interface CallList {
  calls: CallView[];
  next_cursor: string | null;
  dropped: number;
}

/** A message of a conversation, sent back as it came. */
export interface ChatMessage {
  role: 'user' | 'assistant';
  content: unknown;
}

export interface ToolCallView {
  name: string;
  /** null where there is no such tool. */
  server: string | null;
  input: Record<string, unknown>;
  is_error: boolean;
  text: string;
  duration_ms: number;
}

export interface ChatView {
  run_id: string;
  text: string;
  stop_reason: string;
  steps: number;
  messages: ChatMessage[];
}

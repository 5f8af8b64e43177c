import { isObject } from '../json.ts';

export interface AgentTool {
  name: string;
  /** The name that its server gives it. */
  ownName: string;
  description: string | undefined;
  /** JSON Schema of its arguments, unchanged. */
  inputSchema: Record<string, unknown>;
  /** `native` for a tool that runs in this process. */
  server: string;
}

/** The result of MCP's `tools/call`. */
export interface ToolOutcome {
  content: readonly Record<string, unknown>[];
  structuredContent?: unknown;
  isError?: boolean;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** The run that the call belongs to, for the project's call records. */
  run?: { id: string; step: number } | undefined;
}

/** The source of an agent's tools: its own servers, a project, or another Switchboard. */
export interface Toolbox {
  /** Resolves when the tools are known. Concurrent callers share one start. */
  start(): Promise<void>;
  tools(): readonly AgentTool[];
  /** Rejects without a result: the server is unavailable, the call timed out, or the response is a JSON-RPC error. */
  call(tool: AgentTool, args: Record<string, unknown>, options: CallOptions): Promise<ToolOutcome>;
  /** Calls the listener whenever the tools change. Returns the function that ends the subscription. */
  follow(listener: () => void): () => void;
  stop(): Promise<void>;
}

/** Set by a Switchboard on each tool that it lists under another name than the server's. */
const NAME_META_KEY = 'dev.switchboard/name';

export function agentTool(
  name: string,
  { name: listed, description, inputSchema, _meta: meta }: Record<string, unknown>,
  server: string,
): AgentTool {
  const own = isObject(meta) ? meta[NAME_META_KEY] : undefined;
  return {
    name,
    ownName: typeof own === 'string' ? own : String(listed),
    description: typeof description === 'string' ? description : undefined,
    inputSchema: isObject(inputSchema) ? inputSchema : { type: 'object' },
    server,
  };
}

export function outcomeOf(result: unknown): ToolOutcome {
  if (isObject(result) && Array.isArray(result.content)) return result as unknown as ToolOutcome;
  return { content: [{ type: 'text', text: JSON.stringify(result) }] };
}

/** Servers choose the names in messages, so the set is cleared at this size. */
const MAX_REMEMBERED = 1_000;

export function onceEach(warn: (message: string) => void): (message: string) => void {
  const warned = new Set<string>();
  return (message) => {
    if (warned.has(message)) return;
    if (warned.size >= MAX_REMEMBERED) warned.clear();
    warned.add(message);
    warn(message);
  };
}

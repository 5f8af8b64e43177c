/** A tool as an agent sees it. */
export interface AgentTool {
  /** Under this name the model calls it. */
  name: string;
  /** What its server calls it. */
  ownName: string;
  description: string | undefined;
  /** JSON Schema of its arguments, as its server gave it. */
  inputSchema: Record<string, unknown>;
  /** The server that has it; `native` for what runs in this process. */
  server: string;
}

/** What a tool gives: the result of MCP's `tools/call`. */
export interface ToolOutcome {
  content: readonly Record<string, unknown>[];
  structuredContent?: unknown;
  isError?: boolean;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** The run that the call belongs to, for the records of a project that it goes through. */
  run?: { id: string; step: number } | undefined;
}

/** Where an agent's tools come from: servers of its own, a project, or another Switchboard. */
export interface Toolbox {
  /** Settles when the tools are known. Once: those who ask while it starts share it. */
  start(): Promise<void>;
  tools(): readonly AgentTool[];
  /** Fails where no answer came: the server is away, the time is up, it answered with a JSON-RPC error. */
  call(tool: AgentTool, args: Record<string, unknown>, options: CallOptions): Promise<ToolOutcome>;
  /** Tells whenever the tools are others, until what is given is called. */
  follow(listener: () => void): () => void;
  stop(): Promise<void>;
}

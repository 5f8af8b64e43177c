import type { ServerEntry } from '../config.ts';
import type { AgentTool, CallOptions, Toolbox, ToolOutcome } from './toolbox.ts';

export interface LocalToolboxOptions {
  /** As in `mcpServers` of a configuration file. One with a `url` may be a project of a Switchboard. */
  servers: Record<string, ServerEntry>;
  /** Told of what a user should know: names that hide others, keys that have no effect. */
  onWarning?: ((message: string) => void) | undefined;
}

/** The tools of MCP servers that run for this process alone, and end with it. */
export class LocalToolbox implements Toolbox {
  constructor(_options: LocalToolboxOptions) {}

  start(): Promise<void> {
    throw new Error('to be built');
  }

  tools(): readonly AgentTool[] {
    throw new Error('to be built');
  }

  call(_tool: AgentTool, _args: Record<string, unknown>, _options: CallOptions): Promise<ToolOutcome> {
    throw new Error('to be built');
  }

  follow(_listener: () => void): () => void {
    throw new Error('to be built');
  }

  stop(): Promise<void> {
    throw new Error('to be built');
  }
}

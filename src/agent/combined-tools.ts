import type { NativeTool } from './native-tools.ts';
import type { AgentTool, CallOptions, Toolbox, ToolOutcome } from './toolbox.ts';

/** What stands for the server of a tool that runs in this process. */
export const NATIVE_SERVER = 'native';

/** The tools of a toolbox, and those of this process. */
export class CombinedTools implements Toolbox {
  constructor(_toolbox: Toolbox, _native: readonly NativeTool[], _warned: (message: string) => void) {}

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

import { BaseTool, type RunAsyncToolRequest } from '@google/adk';
import type { AgentTool, CallOptions, ToolOutcome } from '../agent/toolbox.ts';

type Declaration = NonNullable<ReturnType<BaseTool['_getDeclaration']>>;

/** Whoever knows where the tool is. */
interface Caller {
  call(tool: AgentTool, args: Record<string, unknown>, options: CallOptions): Promise<ToolOutcome>;
}

/** A tool of an MCP server as one of the ADK, under its own name where that can be, and with its own schema. */
export class SwitchboardTool extends BaseTool {
  private readonly tool: AgentTool;
  private readonly caller: Caller;

  constructor(name: string, tool: AgentTool, caller: Caller) {
    super({ name, description: tool.description ?? '' });
    this.tool = tool;
    this.caller = caller;
  }

  /** The server that has it. */
  get server(): string {
    return this.tool.server;
  }

  /** JSON Schema says more than the ADK's own kind of schema, so it goes to the model as it came. */
  override _getDeclaration(): Declaration {
    const { description, inputSchema } = this.tool;
    return {
      name: this.name,
      ...(description === undefined ? {} : { description }),
      parametersJsonSchema: plain(inputSchema),
    };
  }

  /**
   * What it throws, the ADK tells its plugins, and the model as `{error: message}`. A tool that ran and failed has given a
   * result: that is told under the same key, whole, as Google's own SDK does with MCP tools.
   */
  override async runAsync({ args, toolContext }: RunAsyncToolRequest): Promise<unknown> {
    const outcome = await this.caller.call(this.tool, args, { signal: toolContext.abortSignal });
    const result = plain(outcome);
    return outcome.isError === true ? { error: result } : result;
  }
}

/** The ADK copies what it keeps: nothing may be in it that is no plain JSON, like numbers kept as they were written. */
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

import { BaseTool, type RunAsyncToolRequest } from '@google/adk';
import type { AgentTool, CallOptions, ToolOutcome } from '../agent/toolbox.ts';

type Declaration = NonNullable<ReturnType<BaseTool['_getDeclaration']>>;

interface Caller {
  call(tool: AgentTool, args: Record<string, unknown>, options: CallOptions): Promise<ToolOutcome>;
}

/** A tool of an MCP server as an ADK tool. */
export class SwitchboardTool extends BaseTool {
  private readonly tool: AgentTool;
  private readonly caller: Caller;

  constructor(name: string, tool: AgentTool, caller: Caller) {
    super({ name, description: tool.description ?? '' });
    this.tool = tool;
    this.caller = caller;
  }

  get server(): string {
    return this.tool.server;
  }

  /** Passes JSON Schema on unchanged, because the ADK's own schema type expresses less. */
  override _getDeclaration(): Declaration {
    const { description, inputSchema } = this.tool;
    return {
      name: this.name,
      ...(description === undefined ? {} : { description }),
      parametersJsonSchema: plain(inputSchema),
    };
  }

  /**
   * The ADK passes a thrown error to its plugins, and to the model as `{error: message}`. The result of a failed tool goes under
   * the same key, as in Google's SDK for MCP tools.
   */
  override async runAsync({ args, toolContext }: RunAsyncToolRequest): Promise<unknown> {
    const outcome = await this.caller.call(this.tool, args, { signal: toolContext.abortSignal });
    const result = plain(outcome);
    return outcome.isError === true ? { error: result } : result;
  }
}

/** The ADK copies values, so they must be plain JSON, without numbers kept as raw text. */
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

import { BaseToolset, type ReadonlyContext, type ToolPredicate } from '@google/adk';
import { allowedBy } from '../agent/tool-patterns.ts';
import type { AgentTool } from '../agent/toolbox.ts';
import { SwitchboardError } from '../errors.ts';
import type { Lease } from './shared-toolboxes.ts';
import { SwitchboardTool } from './tool.ts';

export type ToolFilter = readonly string[] | ToolPredicate;

/** A toolset of the ADK. Agents ask for its tools before every turn of the model, so they always have those of now. */
export class SwitchboardToolset extends BaseToolset implements AsyncDisposable {
  private readonly take: () => Lease;
  private readonly isNamed: (tool: AgentTool) => boolean;
  private lease: Lease | undefined;
  private closed: Promise<void> | undefined;

  constructor(take: () => Lease, filter: ToolFilter | undefined) {
    super(typeof filter === 'function' ? filter : [...(filter ?? [])]);
    this.take = take;
    this.isNamed = Array.isArray(filter) ? allowedBy(filter) : () => true;
  }

  /** Connects where nobody has. Fails where that cannot be done; the next one who asks tries again. */
  override async getTools(context?: ReadonlyContext): Promise<SwitchboardTool[]> {
    if (this.closed !== undefined) {
      const what = 'This toolset was closed. Make another one with adkTools for agents that go on.';
      throw new SwitchboardError('server_unavailable', what);
    }
    this.lease ??= this.take();
    const { toolbox } = this.lease;
    await toolbox.start();
    const tools = toolbox
      .tools()
      .filter(this.isNamed)
      .map((tool) => new SwitchboardTool(tool, toolbox));
    const { toolFilter } = this;
    // A predicate judges a tool for an agent. Who asks for none gets them all, as everywhere in the ADK.
    if (typeof toolFilter !== 'function' || context === undefined) return tools;
    return tools.filter((tool) => toolFilter(tool, context));
  }

  /** Ends its connections and its servers, except for what other toolsets share with it. */
  override close(): Promise<void> {
    this.closed ??= this.lease?.release() ?? Promise.resolve();
    return this.closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

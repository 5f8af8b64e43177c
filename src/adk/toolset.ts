import { BaseToolset, type ReadonlyContext, type ToolPredicate } from '@google/adk';
import type { AgentTool, CallOptions, Toolbox, ToolOutcome } from '../agent/toolbox.ts';
import { allowedBy } from '../config/tool-patterns.ts';
import { SwitchboardError } from '../errors.ts';
import { adkNames } from './names.ts';
import type { Lease } from './shared-toolboxes.ts';
import { SwitchboardTool } from './tool.ts';

export type ToolFilter = readonly string[] | ToolPredicate;

interface ToolsetOptions {
  /** Called whenever it needs a toolbox and has none. */
  take: () => Lease;
  filter: ToolFilter | undefined;
  /** How long it keeps the toolbox after it is closed. */
  keepMs: number;
}

/**
 * An ADK toolset. Agents request its tools before every turn of the model, so they always get the current ones. Runners close it
 * after every run, even while the same agent is in another run, so `close` only starts a timer: the connections stay open for a
 * while, and the next use cancels the timer.
 */
export class SwitchboardToolset extends BaseToolset implements AsyncDisposable {
  private readonly take: () => Lease;
  private readonly keepMs: number;
  private readonly isNamed: (tool: Pick<AgentTool, 'name'>) => boolean;
  private lease: Lease | undefined;
  private isClosed = false;
  private uses = 0;
  private timer: NodeJS.Timeout | undefined;
  private released: Promise<void> | undefined;
  private stopped: Promise<void> | undefined;

  constructor({ take, filter, keepMs }: ToolsetOptions) {
    super(typeof filter === 'function' ? filter : [...(filter ?? [])]);
    this.take = take;
    this.keepMs = keepMs;
    this.isNamed = Array.isArray(filter) ? allowedBy(filter) : () => true;
  }

  /** Connects first if necessary. After a failure, the next call tries again. */
  override async getTools(context?: ReadonlyContext): Promise<SwitchboardTool[]> {
    this.isClosed = false;
    const offered = await this.use(async (toolbox) => toolbox.tools());
    const tools = [...adkNames(offered)]
      .filter(([name, tool]) => this.isNamed(tool) || this.isNamed({ name }))
      .map(([name, tool]) => new SwitchboardTool(name, tool, this));
    const { toolFilter } = this;
    // A predicate needs the agent's context. Without one, all tools are returned, as elsewhere in the ADK.
    if (typeof toolFilter !== 'function' || context === undefined) return tools;
    return tools.filter((tool) => toolFilter(tool, context));
  }

  call(tool: AgentTool, args: Record<string, unknown>, options: CallOptions): Promise<ToolOutcome> {
    return this.use((toolbox) => toolbox.call(tool, args, options));
  }

  override async close(): Promise<void> {
    this.isClosed = true;
    this.releaseWhenIdle();
  }

  /** Closes its connections and servers for good, except those that other toolsets share. */
  stop(): Promise<void> {
    this.stopped ??= this.release();
    return this.stopped;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  private async use<Result>(work: (toolbox: Toolbox) => Promise<Result>): Promise<Result> {
    if (this.stopped !== undefined) {
      const what = 'This toolset was stopped. Create another one with adkTools.';
      throw new SwitchboardError('server_unavailable', what);
    }
    clearTimeout(this.timer);
    this.uses++;
    this.lease ??= this.take();
    const { toolbox } = this.lease;
    try {
      await toolbox.start();
      return await work(toolbox);
    } finally {
      this.uses--;
      this.releaseWhenIdle();
    }
  }

  private releaseWhenIdle(): void {
    clearTimeout(this.timer);
    if (!this.isClosed || this.uses > 0 || this.lease === undefined) return;
    this.timer = setTimeout(() => void this.release(), this.keepMs);
  }

  private async release(): Promise<void> {
    clearTimeout(this.timer);
    const { lease, released } = this;
    this.lease = undefined;
    this.released = Promise.all([released, lease?.release()]).then(() => {});
    await this.released;
  }
}

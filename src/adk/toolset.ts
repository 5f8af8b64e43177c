import { BaseToolset, type ReadonlyContext, type ToolPredicate } from '@google/adk';
import type { AgentTool, CallOptions, Toolbox, ToolOutcome } from '../agent/toolbox.ts';
import { allowedBy } from '../config/tool-patterns.ts';
import { SwitchboardError } from '../errors.ts';
import { adkNames } from './names.ts';
import type { Lease } from './shared-toolboxes.ts';
import { SwitchboardTool } from './tool.ts';

export type ToolFilter = readonly string[] | ToolPredicate;

interface ToolsetOptions {
  /** Gives it a toolbox, whenever it has none and needs one. */
  take: () => Lease;
  filter: ToolFilter | undefined;
  /** For how long it keeps the toolbox when it was closed. */
  keepMs: number;
}

/**
 * A toolset of the ADK. Agents ask for its tools before every turn of the model, so they always have those of now.
 *
 * Runners close the toolsets of their agent after every run, also while the same agent is in another run. So what is closed
 * only rests: it keeps its connections for the next run for some time, and whoever uses it then wakes it.
 */
export class SwitchboardToolset extends BaseToolset implements AsyncDisposable {
  private readonly take: () => Lease;
  private readonly keepMs: number;
  private readonly isNamed: (tool: Pick<AgentTool, 'name'>) => boolean;
  private lease: Lease | undefined;
  private isResting = false;
  /** How many use its toolbox just now. */
  private uses = 0;
  private timer: NodeJS.Timeout | undefined;
  /** When the toolbox that it had last is given back. */
  private released: Promise<void> | undefined;
  private stopped: Promise<void> | undefined;

  constructor({ take, filter, keepMs }: ToolsetOptions) {
    super(typeof filter === 'function' ? filter : [...(filter ?? [])]);
    this.take = take;
    this.keepMs = keepMs;
    this.isNamed = Array.isArray(filter) ? allowedBy(filter) : () => true;
  }

  /** Connects where nobody has. Fails where that cannot be done; the next one who asks tries again. */
  override async getTools(context?: ReadonlyContext): Promise<SwitchboardTool[]> {
    this.isResting = false;
    const offered = await this.use(async (toolbox) => toolbox.tools());
    const tools = [...adkNames(offered)]
      .filter(([name, tool]) => this.isNamed(tool) || this.isNamed({ name }))
      .map(([name, tool]) => new SwitchboardTool(name, tool, this));
    const { toolFilter } = this;
    // A predicate judges a tool for an agent. Who asks for none gets them all, as everywhere in the ADK.
    if (typeof toolFilter !== 'function' || context === undefined) return tools;
    return tools.filter((tool) => toolFilter(tool, context));
  }

  call(tool: AgentTool, args: Record<string, unknown>, options: CallOptions): Promise<ToolOutcome> {
    return this.use((toolbox) => toolbox.call(tool, args, options));
  }

  /** Nobody needs it for now. */
  override async close(): Promise<void> {
    this.isResting = true;
    this.restIfIdle();
  }

  /** Ends its connections and its servers at once and for good, except for what other toolsets share with it. */
  stop(): Promise<void> {
    this.stopped ??= this.release();
    return this.stopped;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  private async use<Result>(work: (toolbox: Toolbox) => Promise<Result>): Promise<Result> {
    if (this.stopped !== undefined) {
      const what = 'This toolset was stopped. Make another one with adkTools for agents that go on.';
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
      this.restIfIdle();
    }
  }

  private restIfIdle(): void {
    clearTimeout(this.timer);
    if (!this.isResting || this.uses > 0 || this.lease === undefined) return;
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

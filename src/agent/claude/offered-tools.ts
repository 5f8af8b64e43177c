import type { AgentTool } from '../toolbox.ts';
import { type ClaudeSchema, claudeSchema } from './tool-schema.ts';

/** A tool as Claude's API takes it. */
export interface OfferedTool extends ClaudeSchema {
  tool: AgentTool;
}

/** Makes of tools what Claude's API takes. One that it does not take is left out from then on, and the others are offered. */
export class OfferedTools {
  /** By the schemas that servers gave: what is offered, or why it is not. */
  private readonly known = new WeakMap<object, ClaudeSchema | string>();

  offer(tools: readonly AgentTool[], warned: (message: string) => void): OfferedTool[] {
    return tools.flatMap((tool) => {
      const found = this.of(tool);
      if (typeof found !== 'string') return [{ tool, ...found }];
      warned(`The tool "${tool.name}" of server "${tool.server}" is left out: ${found}`);
      return [];
    });
  }

  leaveOut({ inputSchema }: AgentTool, why: string): void {
    this.known.set(inputSchema, why);
  }

  private of({ inputSchema }: AgentTool): ClaudeSchema | string {
    const known = this.known.get(inputSchema);
    if (known !== undefined) return known;
    const found = claudeSchema(inputSchema) ?? 'its arguments are not an object, and no others can be sent.';
    this.known.set(inputSchema, found);
    return found;
  }
}

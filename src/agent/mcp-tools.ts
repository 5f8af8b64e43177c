import type { AgentTool, ToolOutcome } from './toolbox.ts';

type Item = Record<string, unknown>;

/** A tool that a server listed. */
export function agentTool(name: string, { description, inputSchema }: Item, server: string): AgentTool {
  return {
    name,
    description: typeof description === 'string' ? description : undefined,
    inputSchema: isItem(inputSchema) ? inputSchema : { type: 'object' },
    server,
  };
}

/** What a server answered to `tools/call`. */
export function outcomeOf(result: unknown): ToolOutcome {
  if (isItem(result) && Array.isArray(result.content)) return result as unknown as ToolOutcome;
  return { content: [{ type: 'text', text: JSON.stringify(result) }] };
}

export function isItem(value: unknown): value is Item {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

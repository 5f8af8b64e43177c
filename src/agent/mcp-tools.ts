import type { AgentTool, ToolOutcome } from './toolbox.ts';

type Item = Record<string, unknown>;

/** A Switchboard says so of each tool that it lists under another name than its server does. */
const NAME_META_KEY = 'dev.switchboard/name';

/** A tool that a server listed. */
export function agentTool(
  name: string,
  { name: listed, description, inputSchema, _meta: meta }: Item,
  server: string,
): AgentTool {
  const behind = isItem(meta) ? meta[NAME_META_KEY] : undefined;
  return {
    name,
    ownName: typeof behind === 'string' ? behind : String(listed),
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

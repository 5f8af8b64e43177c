import type { AgentTool } from './toolbox.ts';

/** Whether a tool is one of those that are named: by its name, or by a pattern in which `*` stands for anything. */
export function allowedBy(names: readonly string[]): (tool: AgentTool) => boolean {
  const patterns = names.map((name) => new RegExp(`^${name.split('*').map(RegExp.escape).join('.*')}$`, 's'));
  return ({ name }) => patterns.some((pattern) => pattern.test(name));
}

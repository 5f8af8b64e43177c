import type { AgentTool } from './toolbox.ts';

/** Whether a tool is one of those that are named: by its name, or by a pattern in which `*` stands for anything. */
export function allowedBy(names: readonly string[]): (tool: AgentTool) => boolean {
  const patterns = names.map((name) => name.split('*'));
  return ({ name }) => patterns.some((parts) => fits(name, parts));
}

/** Each part is taken where it stands first, so that no pattern takes long, as one of RegExp could with many stars. */
function fits(name: string, parts: readonly string[]): boolean {
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (parts.length === 1) return name === first;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}

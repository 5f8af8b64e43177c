import type { AgentTool } from '../agent/toolbox.ts';

/** The names that Gemini accepts. */
const acceptedNames = /^[A-Za-z0-9_.:-]{1,64}$/;

/** Maps the names for the model to tools. A tool keeps its server's name if the model accepts it and it is unique. */
export function adkNames(tools: readonly AgentTool[]): Map<string, AgentTool> {
  const counts = new Map<string, number>();
  for (const { name, ownName } of tools) {
    for (const one of new Set([name, ownName])) counts.set(one, (counts.get(one) ?? 0) + 1);
  }
  return new Map(
    tools.map((tool) => {
      const { name, ownName } = tool;
      const keepsOwnName = acceptedNames.test(ownName) && counts.get(ownName) === 1;
      return [keepsOwnName ? ownName : name, tool];
    }),
  );
}

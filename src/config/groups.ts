import type { Path, Problem } from './problems.ts';
import type { ServerEntry } from './schema.ts';

/** A name stands for one thing: a group may be called like one of its own servers, but like no other. */
export function groupProblems(entries: ReadonlyMap<string, ServerEntry>, place: Path): Problem[] {
  const problems: Problem[] = [];
  for (const [name, { group }] of entries) {
    const namesake = group === undefined ? undefined : entries.get(group);
    if (namesake === undefined || namesake.group === group) continue;
    const message = `a server that is not in this group has its name: rename one of them, or set "group": ${JSON.stringify(group)} for that server too`;
    problems.push({ path: [...place, name, 'group'], message });
  }
  return problems;
}

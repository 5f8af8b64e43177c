import { describeOwner, type NameClash, nameClashes } from '../server-names.ts';
import type { Path, Problem } from './problems.ts';
import type { ServerEntry } from './schema.ts';

/** Where a name of a server would stand for another one too. */
export function nameProblemsOf(entries: ReadonlyMap<string, ServerEntry>, place: Path): Problem[] {
  const servers = [...entries].map(([name, { group, prefix }]) => ({ name, group, prefix }));
  return nameClashes(servers).map((clash) => ({
    path: [...place, clash.server, clash.key],
    message: messageOf(clash),
  }));
}

function messageOf(clash: NameClash): string {
  const shown = JSON.stringify(clash.value);
  return clash.key === 'group'
    ? `a server that is not in this group has its name: rename one of them, or set "group": ${shown} for that server too`
    : `${shown} is ${describeOwner(clash)}, so nobody could tell whose tools begin with it: choose another prefix`;
}

import { describeClash, type NamedServer, nameClashes } from '../../config/server-names.ts';
import { SwitchboardError } from '../../errors.ts';
import type { LiveProject } from '../../projects/live-project.ts';

/** Checks new names against the servers of the configuration file. The store checks them against stored servers. */
export function checkNames(live: LiveProject, added: readonly NamedServer[]): void {
  const inFile = live.listed
    .filter(({ row, hosted }) => row === undefined && hosted === undefined)
    .map(({ config: { name, group, prefix } }) => ({ name, group, prefix }));
  for (const { name, group, prefix } of added) {
    if (inFile.some((server) => server.name === name)) throw takenInFile('server', name, name);
    const clash = nameClashes([...inFile, { name, group, prefix }]).find((found) =>
      [found.server, found.other].includes(name),
    );
    if (clash === undefined) continue;
    if (clash.server !== name) throw takenInFile(clash.key, clash.value, name, clash.server);
    throw conflict(
      `The server "${name}" cannot have this ${clash.key}: ${describeClash(clash)}. "${clash.other}" is in the configuration file.`,
      name,
      clash.other,
    );
  }
}

function takenInFile(what: string, value: string, ...names: string[]): SwitchboardError {
  return conflict(`The configuration file already has a ${what} "${value}": choose another name.`, ...names);
}

function conflict(message: string, ...names: string[]): SwitchboardError {
  return new SwitchboardError('conflict', message, { data: { names } });
}

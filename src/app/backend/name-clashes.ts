import { SwitchboardError } from '../../errors.ts';
import type { LiveProject } from '../../projects/live-project.ts';
import { describeOwner, type NamedServer, nameClashes } from '../../server-names.ts';

/**
 * A name stands for one thing, and servers of the configuration file have theirs already. Among stored servers that is the
 * store's to see to.
 */
export function checkNames(live: LiveProject, added: readonly NamedServer[]): void {
  const inFile = live.listed
    .filter(({ row, hosted }) => row === undefined && hosted === undefined)
    .map(({ config: { name, group, prefix } }) => ({ name, group, prefix }));
  for (const server of added) {
    if (inFile.some(({ name }) => name === server.name))
      throw clashError(
        server.name,
        server.name,
        `has a server "${server.name}" already: choose another name`,
      );
    const clash = nameClashes([...inFile, server]).find((found) =>
      [found.server, found.other].includes(server.name),
    );
    if (clash === undefined) continue;
    const fromFile = clash.server === server.name ? clash.other : clash.server;
    if (clash.key === 'group') {
      const what =
        clash.server === server.name
          ? `has a server "${clash.value}" already: choose another group for the server "${server.name}"`
          : `has a group "${clash.value}" already: choose another name`;
      throw clashError(server.name, fromFile, what);
    }
    throw new SwitchboardError(
      'conflict',
      `The prefix ${JSON.stringify(clash.value)} of server "${clash.server}" is ${describeOwner(clash)}, and "${fromFile}" stands in the configuration file: choose another prefix.`,
      { data: { names: [server.name, fromFile] } },
    );
  }
}

function clashError(server: string, fromFile: string, what: string): SwitchboardError {
  return new SwitchboardError('conflict', `The configuration file ${what}.`, {
    data: { names: [...new Set([server, fromFile])] },
  });
}

import { SwitchboardError } from '../../errors.ts';
import type { LiveProject } from '../live-project.ts';

/** A server's names: its own, and that of its group. */
export interface Placed {
  name: string;
  group: string | undefined;
}

/**
 * A name stands for one thing: a server of the configuration file has its name already, and a group may be called like
 * one of its own servers, but like no other. Among stored servers that is the store's to see to.
 */
export function checkPlaces(live: LiveProject, added: readonly Placed[]): void {
  const inFile = live.listed
    .filter(({ row, hosted }) => row === undefined && hosted === undefined)
    .map(({ name, config }) => ({ name, group: config.group }));
  for (const server of added) {
    const clash = inFile.find(
      ({ name, group }) =>
        name === server.name ||
        (name === server.group && group !== server.group) ||
        (group === server.name && server.group !== group),
    );
    if (clash === undefined) continue;
    throw new SwitchboardError(
      'conflict',
      `The server "${server.name}" or its group has a name of the server "${clash.name}" in the configuration file, and a name stands for one thing: rename one of them.`,
      { data: { names: [...new Set([server.name, clash.name])] } },
    );
  }
}

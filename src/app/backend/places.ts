import { SwitchboardError } from '../../errors.ts';
import type { LiveProject } from '../live-project.ts';

/** A server's names: its own, and that of its group. */
export interface Placed {
  name: string;
  group: string | undefined;
}

/**
 * A name stands for one thing: a server of the configuration file has its name already, and a group may be called like
 * one of its own servers, but like no other. Names of stored servers are the database's to keep unique. `instead` is the
 * server that is changed.
 */
export function checkPlaces(live: LiveProject, added: readonly Placed[], instead?: string): void {
  const others = live.listed
    .filter(
      ({ name }) => name !== instead && !added.some((server) => server.name === name && name !== instead),
    )
    .map(({ name, config }) => ({ name, group: config.group }));
  const fileNames = new Set(live.listed.filter(({ row }) => row === undefined).map(({ name }) => name));
  const taken = added.filter(({ name }) => fileNames.has(name)).map(({ name }) => name);
  if (taken.length > 0) {
    const list = taken.map((name) => JSON.stringify(name)).join(', ');
    throw new SwitchboardError(
      'conflict',
      `These names are taken by servers of the configuration file: ${list}.`,
      { data: { names: taken } },
    );
  }
  const all = [...others, ...added];
  for (const { name, group } of all) {
    const namesake = group === undefined ? undefined : all.find((server) => server.name === group);
    if (namesake === undefined || namesake.group === group) continue;
    throw new SwitchboardError(
      'conflict',
      `The group ${JSON.stringify(group)} of server "${name}" has the name of a server that is not in it: rename one of them, or put that server into the group too.`,
      { data: { names: [name, namesake.name] } },
    );
  }
}

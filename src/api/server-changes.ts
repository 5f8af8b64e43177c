import { describeClash, type NamedServer, nameClashes } from '../config/server-names.ts';
import { serverProblems } from '../config/server-rules.ts';
import { variablesIn } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { NewServer as NewServerRow } from '../store/servers.ts';
import { invalidInput } from './http/check.ts';
import type { NewServer, ServerChanges, ServerSettings } from './server-input.ts';

/** Throws if the merged settings contradict each other. */
export function mergeServer(server: NewServer, { settings, ...changes }: ServerChanges): NewServer {
  const kept = Object.entries({ ...server.settings, ...settings }).filter(
    ([, setting]) => setting !== null && setting !== undefined,
  );
  const merged = { ...server, ...changes, settings: Object.fromEntries(kept) as ServerSettings };
  const { transport, config } = merged;
  const problems = serverProblems({ transport, ...merged.settings }, config, ['config']);
  if (problems.length > 0) throw invalidInput(problems);
  return merged;
}

export function rowOf({ name, transport, enabled, description, config, settings }: NewServer): NewServerRow {
  return {
    ...{ name, transport, enabled, description: description ?? '' },
    config: config as Record<string, unknown>,
    settings: settings as Record<string, unknown>,
  };
}

/** The names that must not clash with those of other servers. */
export function namesOf({ name, settings: { group, prefix } }: NewServer): NamedServer {
  return { name, group, prefix };
}

/** The secrets that the store created from credentials: references that the request did not contain. */
export function movedSecrets(sent: object, written: object | undefined): { moved_secrets?: string[] } {
  if (written === undefined) return {};
  const [before, after] = [sent, written].map((config) => variablesIn([JSON.stringify(config)]));
  const moved = [...after!.difference(before!)].toSorted();
  return moved.length === 0 ? {} : { moved_secrets: moved };
}

/** Checks new names against the configuration file. The store checks them against stored servers. */
export function checkNames(project: LiveProject, added: readonly NamedServer[]): void {
  const inFile = project.listed
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

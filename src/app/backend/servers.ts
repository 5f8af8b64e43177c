import type { Backend } from '../../api/backend.ts';
import type { NewServer, ServerChanges } from '../../api/server-input.ts';
import type { ServerView } from '../../api/views.ts';
import type { NamedServer } from '../../config/server-names.ts';
import { unmaskCredentials } from '../../config.ts';
import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import type { ListedServer } from '../../projects/listed-server.ts';
import type { LiveProject } from '../../projects/live-project.ts';
import type { ServerRow, NewServer as StoredServer } from '../../store/servers.ts';
import { viewOf, viewsOf } from '../server-views.ts';
import { change, needStored, type Parts } from './context.ts';
import { mergeServer } from './merge-server.ts';
import { movedSecrets } from './moved-secrets.ts';
import { checkNames } from './name-clashes.ts';
import { tryOut } from './try-out.ts';

/** How often a change is tried that others keep getting ahead of. */
const ATTEMPTS = 5;

export function serversBackend(parts: Parts): Backend['servers'] {
  const { projects } = parts;
  return {
    list: async (project) => viewsOf(projects.get(project)),
    get: async (project, name) => shown(projects.get(project), name),
    async create(project, input) {
      const live = projects.get(project);
      checkNames(live, [namesOf(input)]);
      await change(parts, live, (store) => store.servers.create(live.id, [stored(input)], false));
      return { ...shown(live, input.name), ...movedSecrets(input.config, rowOf(live, input.name)?.config) };
    },
    async change(project, name, changes, ifVersion) {
      const live = projects.get(project);
      for (let attempt = 1; ; attempt++) {
        const listed = find(live, name);
        if (listed.hosted !== undefined) throw hostedHere(listed);
        if (listed.row === undefined) return switchFileServer(parts, live, listed, changes, ifVersion);
        try {
          return await changeStored(parts, live, listed.row, changes, ifVersion);
        } catch (error) {
          // Somebody else was faster, perhaps through another process: the change is made to what is there now.
          const isOutdated = asSwitchboardError(error).code === 'version_conflict';
          if (!isOutdated || ifVersion !== undefined || attempt === ATTEMPTS) throw error;
          await needStored(parts).refresher.refresh(live.id);
        }
      }
    },
    async remove(project, name, ifVersion) {
      const live = projects.get(project);
      const listed = find(live, name);
      if (listed.hosted !== undefined) throw hostedHere(listed);
      if (listed.row === undefined) throw fromFile(listed, 'remove it there');
      if (listed.row.product_id !== null) throw brought(live, listed.row);
      await change(parts, live, (store) => store.servers.delete(live.id, name, ifVersion));
    },
    async test(project, name) {
      const live = projects.get(project);
      const listed = find(live, name);
      // Another connection to its one stdin would be in the way of the one that it has.
      if (listed.hosted !== undefined) throw hostedHere(listed);
      const { config, problem } = listed;
      if (problem !== undefined) throw new SwitchboardError('invalid_config', problem);
      return tryOut(live, config, parts);
    },
    async log(project, name) {
      const live = projects.get(project);
      find(live, name);
      return live.servers.get(name)?.log.lines ?? [];
    },
  };
}

async function changeStored(
  parts: Parts,
  live: LiveProject,
  row: ServerRow,
  changes: ServerChanges,
  ifVersion: number | undefined,
): Promise<ServerView> {
  const isBrought = row.product_id !== null;
  if (isBrought && !isSwitch(changes)) throw brought(live, row);
  const { config } = changes;
  const meant =
    config === undefined ? changes : { ...changes, config: unmaskCredentials(config, row.config) };
  const merged = mergeServer({ ...row, config: row.config as NewServer['config'] }, meant);
  if (!isBrought) checkNames(live, [namesOf(merged)]);
  const written = isSwitch(changes) ? { enabled: merged.enabled } : stored(merged);
  // What was merged is right for that version only.
  const version = ifVersion ?? (isSwitch(changes) ? undefined : row.version);
  await change(parts, live, (store) => store.servers.change(live.id, row.name, written, version));
  return { ...shown(live, merged.name), ...movedSecrets(merged.config, rowOf(live, merged.name)?.config) };
}

/** A server of the configuration file can only be switched on and off: the rest stands in the file. */
async function switchFileServer(
  parts: Parts,
  live: LiveProject,
  listed: ListedServer,
  { enabled, ...changes }: ServerChanges,
  ifVersion: number | undefined,
): Promise<ServerView> {
  const { name, config } = listed;
  if (!isSwitch(changes)) throw fromFile(listed, 'change it there');
  if (ifVersion !== undefined) {
    throw new SwitchboardError(
      'version_conflict',
      `The server "${name}" stands in a file, and has no version.`,
    );
  }
  if (enabled === undefined) return shown(live, name);
  needStored(parts);
  if (enabled && !config.enabled) throw fromFile(listed, 'it is disabled there');
  await change(parts, live, (store) => store.projects.setSwitch(live.id, name, null, enabled));
  return shown(live, name);
}

/** Whether nothing is changed but whether it is enabled. */
function isSwitch({ settings, ...changes }: ServerChanges): boolean {
  return Object.keys(settings).length === 0 && Object.keys(changes).every((key) => key === 'enabled');
}

function find(live: LiveProject, name: string): ListedServer {
  const listed = live.listed.find((server) => server.name === name);
  if (listed !== undefined) return listed;
  throw new SwitchboardError(
    'not_found',
    `There is no server ${JSON.stringify(name)} in project "${live.name}".`,
  );
}

function rowOf(live: LiveProject, name: string): ServerRow | undefined {
  return live.listed.find((server) => server.name === name)?.row;
}

function shown(live: LiveProject, name: string): ServerView {
  return viewOf(live, find(live, name));
}

/** What a server is called, and its tools. */
export function namesOf({ name, settings: { group, prefix } }: NewServer): NamedServer {
  return { name, group, prefix };
}

export function stored({ description, config, settings, ...server }: NewServer): StoredServer {
  const { name, transport, enabled } = server;
  return {
    name,
    transport,
    enabled,
    description: description ?? '',
    config: config as Record<string, unknown>,
    settings: settings as Record<string, unknown>,
  };
}

function fromFile({ name }: ListedServer, what: string): SwitchboardError {
  return new SwitchboardError(
    'read_only',
    `The server "${name}" stands in the configuration file: ${what}.`,
    {
      data: { server: name },
    },
  );
}

function hostedHere({ name }: ListedServer): SwitchboardError {
  return new SwitchboardError(
    'read_only',
    `The server "${name}" is hosted: it is changed, removed and looked at under /api/v1/mcp/servers, or with "switchboard hosted": hosted set and show, start, stop, restart, rm.`,
    { data: { server: name } },
  );
}

function brought(live: LiveProject, row: ServerRow): SwitchboardError {
  const { name } = row;
  const product = live.productOf(row);
  return new SwitchboardError(
    'read_only',
    `The server "${name}" comes with the product "${product}": it can be enabled and disabled here; for all else install another version of the product, or remove it.`,
    { data: { server: name, product } },
  );
}

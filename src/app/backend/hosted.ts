import type { Backend, HostedAnswer } from '../../api/backend.ts';
import type { HostedSettings } from '../../api/hosted-input.ts';
import { unmaskCredentials } from '../../config.ts';
import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import type { Hosting } from '../../projects/hosting/hosting.ts';
import type { RegisteredServer } from '../../projects/hosting/registered.ts';
import type { LiveProject } from '../../projects/live-project.ts';
import type { WorkspaceRow } from '../../store/workspaces.ts';
import { hostedViewOf } from '../hosted-views.ts';
import { change, needStored, type Parts } from './context.ts';
import { mergeHosted } from './merge-hosted.ts';
import { movedSecrets } from './moved-secrets.ts';
import { checkNames } from './name-clashes.ts';

/** How often a change is tried that others keep getting ahead of. */
const ATTEMPTS = 5;

export function hostedBackend(parts: Parts): Backend['hosted'] {
  const { projects } = parts;
  return {
    async list(project) {
      const hosting = needHosting(parts);
      const only = project === undefined ? undefined : projects.get(project);
      const places = hosting.registered
        .all()
        .filter(({ project: { id } }) => only === undefined || only.id === id);
      return places.map((place) => hostedViewOf(place, hosting));
    },
    async get(id) {
      const hosting = needHosting(parts);
      const place = find(hosting, id);
      const { id: row } = place.row;
      const [usage, volumes] = await Promise.all([
        hosting.supervisor?.usage(row),
        hosting.supervisor?.volumeNames(row),
      ]);
      return hostedViewOf(place, hosting, { usage, volumes });
    },
    async create({ name, project, ...input }) {
      const hosting = needHosting(parts);
      const live = projects.get(project);
      checkNames(live, [{ name, group: undefined }]);
      const row = await change(parts, live, (store) =>
        store.hosted.create(live.id, { name, ...stored(input) }),
      );
      await hosting.settled();
      const place = find(hosting, row.id);
      return { ...hostedViewOf(place, hosting), ...movedSecrets(input.config, place.row.mcp_config) };
    },
    async change(id, changes, ifVersion) {
      const hosting = needHosting(parts);
      for (let attempt = 1; ; attempt++) {
        const { row, project } = find(hosting, id);
        const { args } = changes.config;
        const config = args && { ...changes.config, ...unmaskCredentials({ args }, row.mcp_config) };
        const merged = mergeHosted(settingsOf(row), config ? { ...changes, config } : changes);
        try {
          await change(parts, project, (store) =>
            // What was merged is right for that version only.
            store.hosted.change(row.id, stored(merged), ifVersion ?? row.version),
          );
          await hosting.settled();
          if (changes.enabled === true) hosting.startExited(row.id);
          const place = find(hosting, row.id);
          return { ...hostedViewOf(place, hosting), ...movedSecrets(merged.config, place.row.mcp_config) };
        } catch (error) {
          // Somebody else was faster: the change is made to what is there now.
          const isOutdated = asSwitchboardError(error).code === 'version_conflict';
          if (!isOutdated || ifVersion !== undefined || attempt === ATTEMPTS) throw error;
          await needStored(parts).refresher.refresh(project.id);
        }
      }
    },
    async remove(id, { deleteVolumes, project: of }, ifVersion) {
      const hosting = needHosting(parts);
      if (deleteVolumes && isGone(hosting, id)) return removeKept(hosting, projects.get(of), id);
      const { row, project } = find(hosting, id);
      const supervisor = deleteVolumes ? await hosting.requireSupervisor(row.id) : undefined;
      const obstacle = await supervisor?.volumesUnavailable(row.id);
      if (obstacle !== undefined && row.mcp_config.volumes.length > 0) throw unreachable(row, obstacle);
      await change(parts, project, (store) => store.hosted.delete(row.id, ifVersion));
      if (obstacle === undefined)
        await supervisor?.removeVolumes(row.id).catch((error) => Promise.reject(kept(row, error)));
    },
    async call(id, { method, paramsText, timeoutMs }, signal): Promise<HostedAnswer> {
      const hosting = needHosting(parts);
      const { row } = find(hosting, id);
      if (method === 'initialize' || method.startsWith('notifications/')) throw notForCallers(method);
      const answer = await hosting.calls.call(row.id, { method, paramsText, timeoutMs }, signal);
      return 'error' in answer
        ? { errorText: JSON.stringify(answer.error) }
        : { resultText: JSON.stringify(answer.result ?? null) };
    },
    async restart(id) {
      const hosting = needHosting(parts);
      const { row } = find(hosting, id);
      await (await hosting.requireSupervisor(row.id)).restart(row.id);
      return hostedViewOf(find(hosting, row.id), hosting);
    },
    async log(id) {
      const hosting = needHosting(parts);
      const { row } = find(hosting, id);
      const log = (await hosting.requireSupervisor(row.id)).log(row.id);
      return log?.lines.map(lineView) ?? [];
    },
    followLog(id, listener) {
      const hosting = needHosting(parts);
      const { row } = find(hosting, id);
      const { lines, stop } = hosting.logs.add(row.id, {
        line: (line) => listener.line(lineView(line)),
        removed: () => listener.removed(),
      });
      return { lines: lines.map(lineView), stop };
    },
  };
}

function needHosting({ hosting, stored }: Parts): Hosting {
  if (hosting !== undefined) return hosting;
  needStored({ stored });
  throw new Error('There is a database, and nobody who hosts.');
}

function find(hosting: Hosting, id: string): RegisteredServer {
  const places = hosting.registered.all();
  const byId = places.find(({ row }) => row.id === id);
  if (byId !== undefined) return byId;
  const named = places.filter(({ row }) => row.name === id);
  if (named.length === 1) return named[0]!;
  throw named.length === 0
    ? new SwitchboardError('not_found', `There is no hosted server ${JSON.stringify(id)}.`)
    : new SwitchboardError(
        'conflict',
        `Several projects have a hosted server ${JSON.stringify(id)}: take its id (${named.map(({ row, project }) => `${row.id} in "${project.name}"`).join(', ')}).`,
      );
}

function isGone(hosting: Hosting, id: string): boolean {
  return !hosting.registered.all().some(({ row }) => row.id === id || row.name === id);
}

/** Volumes outlive their server, and belong to its name. */
async function removeKept(hosting: Hosting, { id, name }: LiveProject, server: string): Promise<void> {
  const removed = await hosting.removeOrphanedVolumes({ name: server, project: id });
  if (removed.length > 0) return;
  throw new SwitchboardError(
    'not_found',
    `There is no hosted server ${JSON.stringify(server)}, and project "${name}" has no volumes of one that was called so.`,
  );
}

function settingsOf({ enabled, resource_limits, mcp_config }: WorkspaceRow): HostedSettings {
  return { enabled, resource_limits, config: mcp_config };
}

function stored({ enabled, resource_limits, config }: HostedSettings) {
  return { enabled, resource_limits, mcp_config: { ...config } };
}

function notForCallers(method: string): SwitchboardError {
  const why = method === 'initialize' ? 'Switchboard has done the handshake already' : 'it gets no answer';
  return new SwitchboardError('invalid_input', `"${method}" cannot be called: ${why}.`, {
    data: { problems: [{ path: 'method', message: why }] },
  });
}

/** Said before anything is removed: afterwards nobody would know of the volumes. */
function unreachable({ id, name, mcp_config }: WorkspaceRow, why: string): SwitchboardError {
  return new SwitchboardError(
    'conflict',
    `The volumes of the hosted server "${name}" (${mcp_config.volumes.join(', ')}) cannot be removed now, so nothing was: ${why}\nMend that and try again, or remove the server without volumes=delete (switchboard rm without --volumes): its volumes stay where they are, for the next server of that name.`,
    { data: { server: name, id, volumes: mcp_config.volumes } },
  );
}

/** The server is gone, so nobody can say this again: its volumes are found by the name of the next one. */
function kept({ name }: WorkspaceRow, error: unknown): SwitchboardError {
  const { code, message, data } = asSwitchboardError(error);
  return new SwitchboardError(
    code,
    `The hosted server "${name}" was removed, but its volumes could not be: ${message}\nTo remove them later: switchboard rm ${name} --volumes, or the same DELETE again with its name.`,
    { cause: error, data },
  );
}

function lineView({ at, line }: { at: Date; line: string }) {
  return { at: at.toISOString(), line };
}

import { z } from 'zod';
import { unmaskCredentials } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { Sender } from '../identity/principal.ts';
import type { ListedServer } from '../projects/listed-server.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { ServerRow } from '../store/servers.ts';
import { Server, type ServerEvents } from '../upstreams/server.ts';
import { hostedEvent } from './hosted-views.ts';
import { hide } from './http/authorization.ts';
import { eventBytes } from './http/event-stream.ts';
import { created, current, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { checkNames, mergeServer, movedSecrets, namesOf, rowOf } from './server-changes.ts';
import {
  type NewServer,
  newServer,
  newServerOf,
  type ServerChanges,
  serverChanges,
  serverChangesOf,
} from './server-input.ts';
import { serverViewOf } from './server-view.ts';
import { applyChange, changeCurrent, needDatabase, type Services } from './services.ts';
import { denyServer, Sight } from './sight.ts';
import {
  type ServerTest,
  type ServerView,
  serverEvent,
  serverList,
  serverLog,
  serverTest,
  serverView,
} from './views.ts';

/** A client that leaves this much unread is disconnected; it gets all servers when it reconnects. */
const MAX_UNREAD_BYTES = 1024 * 1024;

export const serverRoutes: Route[] = [
  route('GET', '/projects/:project/servers', {
    operationId: 'listServers',
    summary: 'List the servers of a project with their state',
    action: 'see',
    answers: { 200: serverList },
    handle: ({ services, sender, project }) =>
      ok({ servers: new Sight(services.projects, project, sender.principal).serverViews() }),
  }),
  route('POST', '/projects/:project/servers', {
    operationId: 'createServer',
    summary: 'Add a server to a project',
    action: 'operate',
    body: newServer,
    answers: { 201: serverView },
    async handle({ services, sender, project, params, body }) {
      const server = newServerOf(body);
      checkNames(project, [namesOf(server)]);
      await applyChange(services, sender, project, (store) =>
        store.servers.create(project.id, [rowOf(server)], false),
      );
      return created(writtenView(project, server), 'projects', params.project, 'servers', server.name);
    },
  }),
  route('GET', '/projects/:project/servers/:name', {
    operationId: 'getServer',
    summary: 'Get a server with its state',
    action: 'see',
    answers: { 200: serverView },
    handle({ services, sender, project, params }) {
      const sight = new Sight(services.projects, project, sender.principal);
      const listed = project.listed.find(({ name }) => name === params.name);
      const error = noServer(project, params.name);
      if (listed === undefined) throw error;
      const view = sight.viewOf(serverViewOf(project, listed));
      if (view !== undefined) return current(view);
      const { control } = services.identity;
      return hide(() => denyServer(control, sender, project, listed.config, () => error), error);
    },
  }),
  route('PATCH', '/projects/:project/servers/:name', {
    operationId: 'changeServer',
    summary: 'Change a server; fields that are not sent do not change',
    action: 'operate',
    body: serverChanges,
    isConditional: true,
    answers: { 200: serverView },
    async handle({ services, sender, project, params, body, ifVersion }) {
      const changes = serverChangesOf(body);
      const view = await changeCurrent(services, project, ifVersion, () =>
        changeServer(services, sender, project, params.name, changes, ifVersion),
      );
      return current(view);
    },
  }),
  route('DELETE', '/projects/:project/servers/:name', {
    operationId: 'removeServer',
    summary: 'Remove a server',
    action: 'operate',
    isConditional: true,
    answers: { 204: null },
    async handle({ services, sender, project, params, ifVersion }) {
      const listed = findOwn(project, params.name);
      if (listed.row === undefined) throw inFile(listed, 'remove it there');
      if (listed.row.product_id !== null) throw ofProduct(project, listed.row);
      await applyChange(services, sender, project, (store) =>
        store.servers.delete(project.id, listed.name, ifVersion),
      );
      return noContent;
    },
  }),
  route('POST', '/projects/:project/servers/:name/test', {
    operationId: 'testServer',
    summary: 'Test the connection to a server: get what it offers, or why it cannot be reached',
    action: 'operate',
    answers: { 200: serverTest },
    handle: async ({ services, project, params }) =>
      ok(await testServer(services, project, findOwn(project, params.name))),
  }),
  route('GET', '/projects/:project/servers/:name/logs', {
    operationId: 'getServerLog',
    summary: "Get the last lines of a server's log",
    action: 'observe',
    answers: { 200: serverLog },
    handle({ project, params }) {
      const { name } = find(project, params.name);
      return ok({ lines: [...(project.servers.get(name)?.log.lines ?? [])] });
    },
  }),
  route('GET', '/projects/:project/events', {
    operationId: 'followServers',
    summary:
      'Stream the events of a project: `servers` with all servers, then `server` for each change of state and `hosted` for each change of a hosted server',
    action: 'see',
    isStream: true,
    answers: { 200: z.union([serverEvent, hostedEvent]) },
    handle({ services, sender, project, stream: reply }) {
      const sight = new Sight(services.projects, project, sender.principal);
      return reply(MAX_UNREAD_BYTES, (stream) => ({
        first: eventBytes('servers', { servers: sight.serverViews() }),
        unsubscribe: services.events.subscribe(project, stream, sight),
      }));
    },
  }),
];

async function changeServer(
  services: Services,
  sender: Sender,
  project: LiveProject,
  name: string,
  changes: ServerChanges,
  ifVersion: number | undefined,
): Promise<ServerView> {
  const listed = findOwn(project, name);
  const { row } = listed;
  if (row === undefined) return switchFileServer(services, sender, project, listed, changes, ifVersion);
  const isSwitch = isOnlySwitch(changes);
  if (row.product_id !== null && !isSwitch) throw ofProduct(project, row);
  const { config } = changes;
  const unmasked =
    config === undefined ? changes : { ...changes, config: unmaskCredentials(config, row.config) };
  const merged = mergeServer({ ...row, config: row.config as NewServer['config'] }, unmasked);
  if (row.product_id === null) checkNames(project, [namesOf(merged)]);
  const written = isSwitch ? { enabled: merged.enabled } : rowOf(merged);
  // The merge is only valid for this version.
  const version = ifVersion ?? (isSwitch ? undefined : row.version);
  await applyChange(services, sender, project, (store) =>
    store.servers.change(project.id, name, written, version),
  );
  return writtenView(project, merged);
}

/** Servers of the configuration file can only be switched on and off. */
async function switchFileServer(
  services: Services,
  sender: Sender,
  project: LiveProject,
  listed: ListedServer,
  { enabled, ...changes }: ServerChanges,
  ifVersion: number | undefined,
): Promise<ServerView> {
  const { name, config } = listed;
  if (!isOnlySwitch(changes)) throw inFile(listed, 'change it there');
  if (ifVersion !== undefined) {
    throw new SwitchboardError(
      'version_conflict',
      `The server "${name}" is in the configuration file, and has no version.`,
    );
  }
  if (enabled !== undefined) {
    needDatabase(services);
    if (enabled && !config.enabled) throw inFile(listed, 'it is disabled there');
    await applyChange(services, sender, project, (store) =>
      store.projects.setSwitch(project.id, name, null, enabled),
    );
  }
  return serverViewOf(project, find(project, name));
}

function isOnlySwitch({ settings, ...changes }: ServerChanges): boolean {
  return Object.keys(settings).length === 0 && Object.keys(changes).every((key) => key === 'enabled');
}

const ignoreEvents: ServerEvents = {
  ...{ stateChanged() {}, offerChanged() {}, connected() {}, disconnected() {} },
  ...{ notificationReceived() {}, requestReceived() {}, logged() {}, callsFailed() {} },
};

/** Connects separately from the running server. A failed connection is a result, not an error. */
async function testServer(
  { serverSettings, testedServers }: Services,
  project: LiveProject,
  { config, problem }: ListedServer,
): Promise<ServerTest> {
  if (problem !== undefined) throw new SwitchboardError('invalid_config', problem);
  const startedAt = performance.now();
  const server = new Server(
    { ...config, replicas: 1, isolation: 'shared' },
    { ...serverSettings, ...project.access, project },
    ignoreEvents,
    undefined,
  );
  testedServers.add(server);
  try {
    await server.discover();
    const { condition, offer, facts } = server;
    const ok = condition.state === 'ready';
    return {
      ok,
      duration_ms: Math.round(performance.now() - startedAt),
      error: ok ? null : (condition.reason?.message ?? `The server is ${condition.state}.`),
      tools: offer?.tools.length ?? null,
      resources: offer?.resources.length ?? null,
      prompts: offer?.prompts.length ?? null,
      server_info: facts?.serverInfo ?? null,
    };
  } finally {
    testedServers.delete(server);
    await server.stop();
  }
}

function find(project: LiveProject, name: string): ListedServer {
  const listed = project.listed.find((server) => server.name === name);
  if (listed !== undefined) return listed;
  throw noServer(project, name);
}

function noServer(project: LiveProject, name: string): SwitchboardError {
  const message = `There is no server ${JSON.stringify(name)} in project "${project.name}".`;
  return new SwitchboardError('not_found', message);
}

/** Hosted servers have their own routes. A test would also connect to their only stdin a second time. */
function findOwn(project: LiveProject, name: string): ListedServer {
  const listed = find(project, name);
  if (listed.hosted === undefined) return listed;
  throw new SwitchboardError(
    'read_only',
    `The server "${name}" is hosted: manage it under /api/v1/mcp/servers, or with "switchboard hosted" (set, show) and "switchboard" start, stop, restart, rm.`,
    { data: { server: name } },
  );
}

function writtenView(project: LiveProject, { name, config }: NewServer): ServerView {
  const listed = find(project, name);
  return { ...serverViewOf(project, listed), ...movedSecrets(config, listed.row?.config) };
}

function inFile({ name }: ListedServer, what: string): SwitchboardError {
  return new SwitchboardError('read_only', `The server "${name}" is in the configuration file: ${what}.`, {
    data: { server: name },
  });
}

function ofProduct(project: LiveProject, row: ServerRow): SwitchboardError {
  const { name } = row;
  const product = project.productOf(row);
  return new SwitchboardError(
    'read_only',
    `The server "${name}" belongs to the product "${product}": enable or disable it here; for other changes install another version of the product, or remove it.`,
    { data: { server: name, product } },
  );
}

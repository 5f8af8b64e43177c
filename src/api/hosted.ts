import { hostedProblems, limitsOf } from '../config/hosted.ts';
import { unmaskCredentials } from '../config.ts';
import { sseKeepAlive } from '../protocol/sse.ts';
import type { WorkspaceRow } from '../store/workspaces.ts';
import { callHosted, readCall } from './hosted-call.ts';
import {
  type HostedChanges,
  type HostedSettings,
  hostedCall,
  hostedChanges,
  hostedChangesOf,
  hostedQuery,
  logQuery,
  newHosted,
  newHostedOf,
  removalQuery,
} from './hosted-input.ts';
import { findById, findHosted } from './hosted-lookup.ts';
import { removeHosted } from './hosted-removal.ts';
import { hostedViewOf } from './hosted-view.ts';
import {
  type HostedLine,
  type HostedView,
  hostedList,
  hostedLog,
  hostedResult,
  hostedView,
} from './hosted-views.ts';
import { findProject } from './http/authorization.ts';
import { invalidInput } from './http/check.ts';
import { eventBytes } from './http/event-stream.ts';
import { created, current, noContent, ok } from './http/reply.ts';
import { type Asking, type Route, route } from './http/route.ts';
import { ServerRpcError } from './http/rpc-error.ts';
import { placesOf } from './places.ts';
import { checkNames, movedSecrets } from './server-changes.ts';
import { applyChange, changeCurrent, needDatabase, type Services } from './services.ts';

/** More than all lines that a log keeps. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;

export const hostedRoutes: Route[] = [
  route('GET', '/mcp/servers', {
    operationId: 'listHosted',
    summary: 'List the hosted servers of all projects or of one, with their status',
    action: 'operate',
    authorizesItself: true,
    query: hostedQuery,
    answers: { 200: hostedList },
    handle(asking) {
      const { services, query } = asking;
      const { hosting } = needDatabase(services);
      const places = new Set(placesOf(asking, 'operate', query.project));
      const all = hosting.registered.all().filter(({ project }) => places.has(project));
      return ok({ servers: all.map((registered) => hostedViewOf(registered, hosting)) });
    },
  }),
  route('POST', '/mcp/servers', {
    operationId: 'createHosted',
    summary: 'Host a server: run an image in a sandbox',
    action: 'operate',
    authorizesItself: true,
    body: newHosted,
    answers: { 201: hostedView },
    async handle({ services, sender, authorize, body }) {
      const { hosting } = needDatabase(services);
      const { name, project: owner, ...settings } = newHostedOf(body);
      const project = findProject(services, sender, owner);
      authorize(project, name);
      checkNames(project, [{ name, group: undefined }]);
      const { id } = await applyChange(services, sender, project, (store) =>
        store.hosted.create(project.id, { name, ...rowOf(settings) }),
      );
      await hosting.settled();
      return created(writtenView(services, id, settings), 'mcp', 'servers', id);
    },
  }),
  route('GET', '/mcp/servers/:id', {
    operationId: 'getHosted',
    summary: 'Get a hosted server with its status and resource usage',
    action: 'operate',
    authorizesItself: true,
    answers: { 200: hostedView },
    async handle({ params, ...asking }) {
      const { hosting, registered, id } = findHosted(asking, params.id);
      const { supervisor } = hosting;
      const [usage, volumes] = await Promise.all([supervisor?.usage(id), supervisor?.volumeNames(id)]);
      return current(hostedViewOf(registered, hosting, { usage, volumes }));
    },
  }),
  route('PATCH', '/mcp/servers/:id', {
    operationId: 'changeHosted',
    summary: 'Change a hosted server; it restarts if the change needs that',
    action: 'operate',
    authorizesItself: true,
    body: hostedChanges,
    isConditional: true,
    answers: { 200: hostedView },
    handle: async ({ params, body, ifVersion, ...asking }) =>
      current(await changeHosted(asking, params.id, hostedChangesOf(body), ifVersion)),
  }),
  route('DELETE', '/mcp/servers/:id', {
    operationId: 'removeHosted',
    summary:
      'Stop and remove a hosted server. Its volumes are kept unless `volumes=delete` is set, which can also be sent later with the name of the server',
    action: 'operate',
    authorizesItself: true,
    query: removalQuery,
    isConditional: true,
    answers: { 204: null },
    async handle({ params, query, ifVersion, ...asking }) {
      const deletesVolumes = query.volumes === 'delete';
      await removeHosted(asking, params.id, deletesVolumes, query.project, ifVersion);
      return noContent;
    },
  }),
  route('POST', '/mcp/servers/:id/call', {
    operationId: 'callHosted',
    summary:
      'Send one MCP request to the server. If the server returns an error, its code determines the status, and `details.rpc` has the error',
    action: 'call',
    authorizesItself: true,
    body: hostedCall,
    read: readCall,
    answers: { 200: hostedResult },
    async handle({ params, body, signal, ...asking }) {
      const found = findHosted(asking, params.id);
      const response = await callHosted(asking, found, body, signal);
      if ('error' in response) throw new ServerRpcError(JSON.stringify(response.error));
      return { status: 200 as const, json: `{"result":${JSON.stringify(response.result ?? null)}}` };
    },
  }),
  route('POST', '/mcp/servers/:id/restart', {
    operationId: 'restartHosted',
    summary: 'Restart a hosted server, and clear its crash history',
    action: 'operate',
    authorizesItself: true,
    answers: { 200: hostedView },
    async handle({ params, ...asking }) {
      const { hosting, id } = findHosted(asking, params.id);
      await (await hosting.requireSupervisor(id)).restart(id);
      return current(hostedViewOf(findById(asking.services, id), hosting));
    },
  }),
  route('POST', '/mcp/servers/:id/stop', {
    operationId: 'stopHosted',
    summary: 'Disable a hosted server, which stops it. Responds at once: see `status` for progress',
    action: 'operate',
    authorizesItself: true,
    answers: { 200: hostedView },
    handle: async ({ params, ...asking }) =>
      current(await changeHosted(asking, params.id, { enabled: false, config: {} }, undefined)),
  }),
  route('POST', '/mcp/servers/:id/start', {
    operationId: 'startHosted',
    summary: 'Enable a hosted server, which starts it. Responds at once: see `status` for progress',
    action: 'operate',
    authorizesItself: true,
    answers: { 200: hostedView },
    handle: async ({ params, ...asking }) =>
      current(await changeHosted(asking, params.id, { enabled: true, config: {} }, undefined)),
  }),
  route('GET', '/mcp/servers/:id/logs', {
    operationId: 'getHostedLog',
    summary: "Get the last lines of a hosted server's log; with `follow`, also stream new ones",
    action: 'observe',
    authorizesItself: true,
    query: logQuery,
    isStream: 'on demand',
    answers: { 200: hostedLog },
    async handle({ params, query, stream: reply, ...asking }) {
      const { hosting, id } = findHosted(asking, params.id);
      if (!query.follow) {
        const supervisor = await hosting.requireSupervisor(id);
        return ok({ lines: supervisor.log(id)?.lines.map(lineView) ?? [] });
      }
      return reply(MAX_UNREAD_BYTES, (stream) => {
        const { lines, stop } = hosting.logs.add(id, {
          line: (line) => stream.send(lineEvent(line)),
          removed: () => stream.end(),
        });
        // The comment flushes the headers even if there are no lines yet.
        return { first: Buffer.concat([sseKeepAlive, ...lines.map(lineEvent)]), unsubscribe: stop };
      });
    },
  }),
];

async function changeHosted(
  asking: Asking,
  idOrName: string,
  changes: HostedChanges,
  ifVersion: number | undefined,
): Promise<HostedView> {
  const { services, sender } = asking;
  const { hosting, id, registered } = findHosted(asking, idOrName);
  return changeCurrent(services, registered.project, ifVersion, async () => {
    const { row, project } = findById(services, id);
    const merged = mergeHosted(row, changes);
    await applyChange(services, sender, project, (store) =>
      // The merge is only valid for this version.
      store.hosted.change(id, rowOf(merged), ifVersion ?? row.version),
    );
    await hosting.settled();
    if (changes.enabled === true) hosting.startExited(id);
    return writtenView(services, id, merged);
  });
}

/** Throws if the merged settings contradict each other. */
function mergeHosted(
  row: Pick<WorkspaceRow, 'enabled' | 'resource_limits' | 'mcp_config'>,
  { enabled = row.enabled, resource_limits = {}, config: changed }: HostedChanges,
): HostedSettings {
  const { environment: changedVariables, args, ...plain } = changed;
  const unmasked = args === undefined ? {} : unmaskCredentials({ args }, row.mcp_config);
  const variables = Object.entries({ ...row.mcp_config.environment, ...changedVariables });
  const environment = Object.fromEntries(
    variables.filter((variable): variable is [string, string] => variable[1] !== null),
  );
  const config = { ...row.mcp_config, ...plain, ...unmasked, environment };
  const problems = hostedProblems(config);
  if (problems.length > 0) throw invalidInput(problems);
  return { enabled, resource_limits: limitsOf({ ...row.resource_limits, ...resource_limits }), config };
}

function rowOf({ enabled, resource_limits, config }: HostedSettings) {
  return { enabled, resource_limits, mcp_config: { ...config } };
}

function writtenView(services: Services, id: string, { config }: HostedSettings): HostedView {
  const { hosting } = needDatabase(services);
  const registered = findById(services, id);
  return { ...hostedViewOf(registered, hosting), ...movedSecrets(config, registered.row.mcp_config) };
}

function lineView({ at, line }: { at: Date; line: string }): HostedLine {
  return { at: at.toISOString(), line };
}

function lineEvent(line: { at: Date; line: string }): Buffer {
  return eventBytes('line', lineView(line));
}

import type { Backend } from './backend.ts';
import { readCall } from './hosted-call.ts';
import {
  hostedCall,
  hostedChanges,
  hostedChangesOf,
  hostedQuery,
  logQuery,
  newHosted,
  newHostedOf,
  removalQuery,
} from './hosted-input.ts';
import type { HostedLogs } from './hosted-logs.ts';
import { hostedList, hostedLog, hostedResult, hostedView } from './hosted-views.ts';
import { created, current, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { ServerRefusal } from './http/server-refusal.ts';

export function hostedRoutes({ hosted }: Backend, logs: HostedLogs): Route[] {
  return [
    route({
      method: 'GET',
      path: '/mcp/servers',
      operationId: 'listHosted',
      summary: 'All servers that Switchboard runs, or those of a project, and how they are',
      query: hostedQuery,
      answers: { 200: hostedList },
      handle: async ({ query }) => ok({ servers: await hosted.list(query.project) }),
    }),
    route({
      method: 'POST',
      path: '/mcp/servers',
      operationId: 'createHosted',
      summary: 'Run a server: an image in a sandbox of its own',
      body: newHosted,
      answers: { 201: hostedView },
      async handle({ body }) {
        const server = await hosted.create(newHostedOf(body));
        return created(server, ['mcp', 'servers', server.id]);
      },
    }),
    route({
      method: 'GET',
      path: '/mcp/servers/:id',
      operationId: 'getHosted',
      summary: 'One of them, how it is, and what it uses',
      answers: { 200: hostedView },
      handle: async ({ params }) => current(await hosted.get(params.id)),
    }),
    route({
      method: 'PATCH',
      path: '/mcp/servers/:id',
      operationId: 'changeHosted',
      summary: 'Change one: it is started anew where that is needed',
      body: hostedChanges,
      isConditional: true,
      answers: { 200: hostedView },
      handle: async ({ params, body, ifVersion }) =>
        current(await hosted.change(params.id, hostedChangesOf(body), ifVersion)),
    }),
    route({
      method: 'DELETE',
      path: '/mcp/servers/:id',
      operationId: 'removeHosted',
      summary:
        'Stop and remove one; what it has kept stays, unless that is to go too, now or by its name afterwards',
      query: removalQuery,
      isConditional: true,
      answers: { 204: null },
      async handle({ params, query, ifVersion }) {
        const { volumes, project } = query;
        await hosted.remove(params.id, { deleteVolumes: volumes === 'delete', project }, ifVersion);
        return noContent;
      },
    }),
    route({
      method: 'POST',
      path: '/mcp/servers/:id/call',
      operationId: 'callHosted',
      summary: 'One request to the server. An error of it has a status by its code, and is in `details.rpc`',
      text: hostedCall,
      answers: { 200: hostedResult },
      async handle({ params, text, signal }) {
        const answer = await hosted.call(params.id, readCall(text), signal);
        if ('errorText' in answer) throw new ServerRefusal(answer.errorText);
        return { status: 200 as const, json: `{"result":${answer.resultText}}` };
      },
    }),
    route({
      method: 'POST',
      path: '/mcp/servers/:id/restart',
      operationId: 'restartHosted',
      summary: 'Stop it and start it anew; its crashes are forgotten',
      answers: { 200: hostedView },
      handle: async ({ params }) => current(await hosted.restart(params.id)),
    }),
    route({
      method: 'POST',
      path: '/mcp/servers/:id/stop',
      operationId: 'stopHosted',
      summary:
        'Disable it, which stops it until it is started again. Answers at once; `status` tells the rest',
      answers: { 200: hostedView },
      handle: async ({ params }) =>
        current(await hosted.change(params.id, { enabled: false, config: {} }, undefined)),
    }),
    route({
      method: 'POST',
      path: '/mcp/servers/:id/start',
      operationId: 'startHosted',
      summary: 'Enable it, which starts it. Answers at once; `status` tells the rest',
      answers: { 200: hostedView },
      handle: async ({ params }) =>
        current(await hosted.change(params.id, { enabled: true, config: {} }, undefined)),
    }),
    route({
      method: 'GET',
      path: '/mcp/servers/:id/logs',
      operationId: 'getHostedLog',
      summary: 'The last lines of its log, and with `follow` those that come',
      query: logQuery,
      isStream: 'on demand',
      answers: { 200: hostedLog },
      handle: async ({ params, query }) =>
        query.follow ? { stream: logs.enter(params.id) } : ok({ lines: [...(await hosted.log(params.id))] }),
    }),
  ];
}

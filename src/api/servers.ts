import { z } from 'zod';
import type { Backend } from './backend.ts';
import type { EventFeed } from './events.ts';
import { hostedEvent } from './hosted-views.ts';
import { created, current, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { newServer, newServerOf, serverChanges, serverChangesOf } from './server-input.ts';
import { serverEvent, serverList, serverLog, serverTest, serverView } from './views.ts';

export function serverRoutes({ servers }: Backend, feed: EventFeed): Route[] {
  return [
    route({
      method: 'GET',
      path: '/projects/:project/servers',
      operationId: 'listServers',
      summary: 'All servers of a project, and how they are',
      answers: { 200: serverList },
      handle: async ({ params }) => ok({ servers: await servers.list(params.project) }),
    }),
    route({
      method: 'POST',
      path: '/projects/:project/servers',
      operationId: 'createServer',
      summary: 'Add a server to a project',
      body: newServer,
      answers: { 201: serverView },
      async handle({ params: { project }, body }) {
        const server = await servers.create(project, newServerOf(body));
        return created(server, ['projects', project, 'servers', server.name]);
      },
    }),
    route({
      method: 'GET',
      path: '/projects/:project/servers/:name',
      operationId: 'getServer',
      summary: 'One server, and how it is',
      answers: { 200: serverView },
      handle: async ({ params: { project, name } }) => current(await servers.get(project, name)),
    }),
    route({
      method: 'PATCH',
      path: '/projects/:project/servers/:name',
      operationId: 'changeServer',
      summary: 'Change a server: what is not sent stays as it is',
      body: serverChanges,
      isConditional: true,
      answers: { 200: serverView },
      handle: async ({ params: { project, name }, body, ifVersion }) =>
        current(await servers.change(project, name, serverChangesOf(body), ifVersion)),
    }),
    route({
      method: 'DELETE',
      path: '/projects/:project/servers/:name',
      operationId: 'removeServer',
      summary: 'Remove a server',
      isConditional: true,
      answers: { 204: null },
      async handle({ params: { project, name }, ifVersion }) {
        await servers.remove(project, name, ifVersion);
        return noContent;
      },
    }),
    route({
      method: 'POST',
      path: '/projects/:project/servers/:name/test',
      operationId: 'testServer',
      summary: 'Connect to a server, and say what it offers or why it cannot be reached',
      answers: { 200: serverTest },
      handle: async ({ params: { project, name } }) => ok(await servers.test(project, name)),
    }),
    route({
      method: 'GET',
      path: '/projects/:project/servers/:name/logs',
      operationId: 'getServerLog',
      summary: "The last lines of a server's log",
      answers: { 200: serverLog },
      handle: async ({ params: { project, name } }) => ok({ lines: [...(await servers.log(project, name))] }),
    }),
    route({
      method: 'GET',
      path: '/projects/:project/events',
      operationId: 'followServers',
      summary:
        'An event `servers` with all of them, then an event `server` for every change of state, and `hosted` for how those fare that we run',
      isStream: true,
      answers: { 200: z.union([serverEvent, hostedEvent]) },
      handle: async ({ params }) => ({ stream: await feed.enter(params.project) }),
    }),
  ];
}

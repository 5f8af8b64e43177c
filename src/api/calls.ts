import type { Backend } from './backend.ts';
import { ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { callFilterOf, callQuery } from './inputs.ts';
import { callList } from './views.ts';

export function callRoutes({ calls }: Backend): Route[] {
  return [
    route({
      method: 'GET',
      path: '/projects/:project/calls',
      operationId: 'listCalls',
      summary: 'The records of calls, the newest first',
      query: callQuery,
      answers: { 200: callList },
      handle: async ({ params, query }) => ok(await calls.list(params.project, callFilterOf(query))),
    }),
  ];
}

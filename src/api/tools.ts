import type { Backend } from './backend.ts';
import { ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { toolSwitch } from './inputs.ts';
import { toolList, toolView } from './views.ts';

export function toolRoutes({ tools }: Backend): Route[] {
  return [
    route({
      method: 'GET',
      path: '/projects/:project/tools',
      operationId: 'listTools',
      summary: 'All tools of a project, those that are switched off too',
      answers: { 200: toolList },
      handle: async ({ params }) => ok({ tools: await tools.list(params.project) }),
    }),
    route({
      method: 'PATCH',
      path: '/projects/:project/tools/:tool',
      operationId: 'switchTool',
      summary: 'Switch a tool on or off',
      body: toolSwitch,
      answers: { 200: toolView },
      handle: async ({ params: { project, tool }, body }) =>
        ok(await tools.switch(project, tool, body.enabled)),
    }),
  ];
}

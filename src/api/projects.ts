import type { Backend } from './backend.ts';
import { created, current, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { newProject, projectChanges } from './inputs.ts';
import { projectList, projectView } from './views.ts';

export function projectRoutes({ projects }: Backend): Route[] {
  return [
    route({
      method: 'GET',
      path: '/projects',
      operationId: 'listProjects',
      summary: 'All projects',
      answers: { 200: projectList },
      handle: async () => ok({ projects: await projects.list() }),
    }),
    route({
      method: 'POST',
      path: '/projects',
      operationId: 'createProject',
      summary: 'Create a project',
      body: newProject,
      answers: { 201: projectView },
      async handle({ body }) {
        const project = await projects.create(body);
        return created(project, ['projects', project.id]);
      },
    }),
    route({
      method: 'GET',
      path: '/projects/:project',
      operationId: 'getProject',
      summary: 'One project',
      answers: { 200: projectView },
      handle: async ({ params }) => current(await projects.get(params.project)),
    }),
    route({
      method: 'PATCH',
      path: '/projects/:project',
      operationId: 'changeProject',
      summary: 'Change a project: what is not sent stays as it is',
      body: projectChanges,
      isConditional: true,
      answers: { 200: projectView },
      handle: async ({ params, body, ifVersion }) =>
        current(await projects.change(params.project, body, ifVersion)),
    }),
    route({
      method: 'DELETE',
      path: '/projects/:project',
      operationId: 'removeProject',
      summary: 'Remove a project and everything in it',
      isConditional: true,
      answers: { 204: null },
      async handle({ params, ifVersion }) {
        await projects.remove(params.project, ifVersion);
        return noContent;
      },
    }),
  ];
}

import { SwitchboardError } from '../errors.ts';
import type { LiveProject } from '../projects/live-project.ts';
import { defined } from './defined.ts';
import { created, current, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { newProject, projectChanges } from './inputs.ts';
import { applyChange } from './services.ts';
import { type ProjectView, projectList, projectView } from './views.ts';

export const projectRoutes: Route[] = [
  route('GET', '/projects', {
    operationId: 'listProjects',
    summary: 'List all projects',
    answers: { 200: projectList },
    handle: ({ services }) => ok({ projects: services.projects.list().map(projectViewOf) }),
  }),
  route('POST', '/projects', {
    operationId: 'createProject',
    summary: 'Create a project',
    body: newProject,
    answers: { 201: projectView },
    async handle({ services, body: { description, ...input } }) {
      const { id } = await applyChange(services, undefined, (store) =>
        store.projects.create({ ...defined(input), name: input.name, description: description ?? '' }),
      );
      return created(projectViewOf(services.projects.get(id)), 'projects', id);
    },
  }),
  route('GET', '/projects/:project', {
    operationId: 'getProject',
    summary: 'Get a project',
    answers: { 200: projectView },
    handle: ({ project }) => current(projectViewOf(project)),
  }),
  route('PATCH', '/projects/:project', {
    operationId: 'changeProject',
    summary: 'Change a project; fields that are not sent do not change',
    body: projectChanges,
    isConditional: true,
    answers: { 200: projectView },
    async handle({ services, project, body: { description, ...changes }, ifVersion }) {
      const { id, isDefault, name } = project;
      if (isDefault && changes.name !== undefined && changes.name !== name) {
        throw new SwitchboardError('read_only', 'The project "default" keeps its name: clients rely on it.');
      }
      const written = {
        ...defined(changes),
        ...(description === undefined ? {} : { description: description ?? '' }),
      };
      await applyChange(services, project, (store) => store.projects.change(id, written, ifVersion));
      return current(projectViewOf(services.projects.get(id)));
    },
  }),
  route('DELETE', '/projects/:project', {
    operationId: 'removeProject',
    summary: 'Remove a project and everything in it',
    isConditional: true,
    answers: { 204: null },
    async handle({ services, project, ifVersion }) {
      if (project.isDefault) {
        throw new SwitchboardError(
          'read_only',
          'The project "default" cannot be removed. To empty it, remove its servers.',
        );
      }
      await applyChange(services, project, (store) => store.projects.delete(project.id, ifVersion));
      return noContent;
    },
  }),
];

function projectViewOf({ row, names, listed }: LiveProject): ProjectView {
  return {
    id: row.id,
    name: row.name,
    description: row.description || null,
    record_payloads: row.record_payloads,
    retention_days: row.retention_days,
    names,
    version: row.version,
    server_count: listed.length,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

import { SwitchboardError } from '../errors.ts';
import type { Principal, Sender } from '../identity/principal.ts';
import type { LiveProject } from '../projects/live-project.ts';
import { defined } from './defined.ts';
import { created, current, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { newProject, projectChanges } from './inputs.ts';
import { applyChange, needDatabase, type Services } from './services.ts';
import { Sight } from './sight.ts';
import { type ProjectView, projectList, projectView } from './views.ts';

export const projectRoutes: Route[] = [
  route('GET', '/projects', {
    operationId: 'listProjects',
    summary: 'List the projects that the sender may see',
    action: 'any',
    answers: { 200: projectList },
    handle({ services, sender: { principal } }) {
      const visible = services.projects.list().filter(({ id }) => principal.permissions.may('see', id));
      return ok({ projects: visible.map((project) => projectViewOf(services, principal, project)) });
    },
  }),
  route('POST', '/projects', {
    operationId: 'createProject',
    summary: 'Create a project',
    action: 'administer',
    body: newProject,
    answers: { 201: projectView },
    async handle({ services, sender, body: { description, ...input } }) {
      const { id } = await applyChange(services, sender, undefined, (store) =>
        store.projects.create({ ...defined(input), name: input.name, description: description ?? '' }),
      );
      return created(viewAfter(services, sender, id), 'projects', id);
    },
  }),
  route('GET', '/projects/:project', {
    operationId: 'getProject',
    summary: 'Get a project',
    action: 'see',
    answers: { 200: projectView },
    handle: ({ services, sender, project }) => current(projectViewOf(services, sender.principal, project)),
  }),
  route('PATCH', '/projects/:project', {
    operationId: 'changeProject',
    summary: 'Change a project; fields that are not sent do not change',
    action: 'administer',
    body: projectChanges,
    isConditional: true,
    answers: { 200: projectView },
    async handle({ services, sender, project, body: { description, ...changes }, ifVersion }) {
      const { id, isDefault, name } = project;
      if (isDefault && changes.name !== undefined && changes.name !== name) {
        throw new SwitchboardError('read_only', 'The project "default" keeps its name: clients rely on it.');
      }
      const written = {
        ...defined(changes),
        ...(description === undefined ? {} : { description: description ?? '' }),
      };
      await applyChange(services, sender, project, (store) => store.projects.change(id, written, ifVersion));
      return current(viewAfter(services, sender, id));
    },
  }),
  route('DELETE', '/projects/:project', {
    operationId: 'removeProject',
    summary: 'Remove a project and everything in it',
    action: 'administer',
    isConditional: true,
    answers: { 204: null },
    async handle({ services, sender, project, ifVersion }) {
      if (project.isDefault) {
        throw new SwitchboardError(
          'read_only',
          'The project "default" cannot be removed. To empty it, remove its servers.',
        );
      }
      await applyChange(services, sender, project, (store) => store.projects.delete(project.id, ifVersion));
      // Its keys, roles, rules and limits are removed with it.
      await needDatabase(services).policyRefresher.refresh();
      return noContent;
    },
  }),
];

function viewAfter(services: Services, { principal }: Sender, id: string): ProjectView {
  return projectViewOf(services, principal, services.projects.get(id));
}

function projectViewOf({ projects }: Services, principal: Principal, project: LiveProject): ProjectView {
  const { row, names, listed } = project;
  const sight = new Sight(projects, project, principal);
  return {
    id: row.id,
    name: row.name,
    description: row.description || null,
    record_payloads: row.record_payloads,
    retention_days: row.retention_days,
    names,
    version: row.version,
    server_count: listed.filter(({ config }) => sight.shows(config)).length,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

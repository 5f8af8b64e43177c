import { fields, secretName } from '../config/fields.ts';
import { variablesOf } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { hostedVariables } from '../projects/hosted-rows.ts';
import type { LiveProject } from '../projects/live-project.ts';
import { check } from './http/check.ts';
import { created, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { secretValue } from './inputs.ts';
import { applyChange, needDatabase } from './services.ts';
import { rotation, type SecretView, secretList, secretView } from './views.ts';

const named = fields({ secret: secretName });

export const secretRoutes: Route[] = [
  route('GET', '/projects/:project/secrets', {
    operationId: 'listSecrets',
    summary: 'List the names of the secrets of a project; values are never shown',
    action: 'secrets',
    answers: { 200: secretList },
    handle({ services, project }) {
      needDatabase(services);
      return ok({ secrets: secretViewsOf(project) });
    },
  }),
  route('PUT', '/projects/:project/secrets/:secret', {
    operationId: 'putSecret',
    summary: 'Set a secret that servers can refer to',
    action: 'secrets',
    body: secretValue,
    answers: { 200: secretView, 201: secretView },
    async handle({ services, sender, project, params, body }) {
      const { secret } = check(named, { secret: params.secret });
      const { created: isNew } = await applyChange(services, sender, project, (store) =>
        store.secrets.put(project.id, secret, body.value),
      );
      const view = findSecret(project, secret);
      return isNew ? created(view, 'projects', params.project, 'secrets', secret) : ok(view);
    },
  }),
  route('DELETE', '/projects/:project/secrets/:secret', {
    operationId: 'removeSecret',
    summary: 'Remove a secret',
    action: 'secrets',
    answers: { 204: null },
    async handle({ services, sender, project, params }) {
      await applyChange(services, sender, project, (store) =>
        store.secrets.delete(project.id, params.secret),
      );
      return noContent;
    },
  }),
  route('POST', '/secrets/rotate', {
    operationId: 'rotateSecrets',
    summary: 'Encrypt the secrets of all projects with the newest key',
    action: 'administer',
    answers: { 200: rotation },
    async handle({ services, sender }) {
      const { rotated, keyId } = await applyChange(services, sender, undefined, (store) =>
        store.secrets.rotate(),
      );
      return ok({ rotated, key_id: keyId });
    },
  }),
];

function secretViewsOf(project: LiveProject): SecretView[] {
  const uses = project.listed.map(({ name, config, hosted }) => ({
    name,
    variables: hosted === undefined ? variablesOf(config.transport) : hostedVariables(hosted),
  }));
  return project.vault.secrets().map(({ name, created_at, updated_at }) => ({
    name,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    used_by: uses.filter(({ variables }) => variables.has(name)).map((server) => server.name),
  }));
}

function findSecret(project: LiveProject, name: string): SecretView {
  const found = secretViewsOf(project).find((secret) => secret.name === name);
  if (found !== undefined) return found;
  throw new SwitchboardError(
    'not_found',
    `The secret "${name}" in project "${project.name}" was removed meanwhile.`,
  );
}

import { fields, secretName } from '../config/fields.ts';
import type { Backend } from './backend.ts';
import { check } from './http/check.ts';
import { created, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { secretValue } from './inputs.ts';
import { rotation, secretList, secretView } from './views.ts';

const named = fields({ secret: secretName });

export function secretRoutes({ secrets }: Backend): Route[] {
  return [
    route({
      method: 'GET',
      path: '/projects/:project/secrets',
      operationId: 'listSecrets',
      summary: 'The names of all secrets of a project; values are never shown',
      answers: { 200: secretList },
      handle: async ({ params }) => ok({ secrets: await secrets.list(params.project) }),
    }),
    route({
      method: 'PUT',
      path: '/projects/:project/secrets/:secret',
      operationId: 'putSecret',
      summary: 'Set a secret, for servers that refer to it',
      body: secretValue,
      answers: { 200: secretView, 201: secretView },
      async handle({ params, body }) {
        const { secret } = check(named, { secret: params.secret });
        const { isNew, view } = await secrets.put(params.project, secret, body.value);
        return isNew ? created(view, ['projects', params.project, 'secrets', secret]) : ok(view);
      },
    }),
    route({
      method: 'DELETE',
      path: '/projects/:project/secrets/:secret',
      operationId: 'removeSecret',
      summary: 'Remove a secret',
      answers: { 204: null },
      async handle({ params: { project, secret } }) {
        await secrets.remove(project, secret);
        return noContent;
      },
    }),
    route({
      method: 'POST',
      path: '/secrets/rotate',
      operationId: 'rotateSecrets',
      summary: 'Encrypt the secrets of all projects with the newest key',
      answers: { 200: rotation },
      handle: async () => ok(await secrets.rotate()),
    }),
  ];
}

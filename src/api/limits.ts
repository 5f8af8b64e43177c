import { SwitchboardError } from '../errors.ts';
import type { StoredLimit } from '../store/access/limits.ts';
import { newLimit, placeQuery } from './access-input.ts';
import { authorizeRow, checkRoom, listedPlaces, placeOf, projectRef } from './access-places.ts';
import { type LimitView, limitList, limitView } from './access-views.ts';
import { created, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { type Names, readNames } from './names.ts';
import { findPrincipal } from './principals.ts';
import { applyAccess, needDatabase, type Services } from './services.ts';

export const limitRoutes: Route[] = [
  route('GET', '/limits', {
    operationId: 'listLimits',
    summary: 'List the limits of a project, or of all whose access the sender manages',
    action: 'manage',
    authorizesItself: true,
    query: placeQuery,
    answers: { 200: limitList },
    async handle({ query, ...asking }) {
      const { services } = asking;
      const { store } = needDatabase(services);
      const isListed = listedPlaces(asking, query.project);
      const [limits, names] = await Promise.all([store.access.listLimits(), readNames(services)]);
      const listed = limits.filter(({ project }) => isListed(project));
      return ok({ limits: listed.map((limit) => limitViewOf(services, limit, names)) });
    },
  }),
  route('POST', '/limits', {
    operationId: 'createLimit',
    summary: 'Limit requests per minute, or concurrent calls',
    action: 'manage',
    authorizesItself: true,
    body: newLimit,
    answers: { 201: limitView },
    async handle({ body, ...asking }) {
      const { services, sender } = asking;
      const { store } = needDatabase(services);
      const project = placeOf(asking, body.project, 'a new limit');
      const principal = body.principal ? (await findPrincipal(asking, body.principal)).id : undefined;
      checkRoom((await store.access.listLimits()).length, 'limits');
      const { server, tool, per_minute, concurrent, shared } = body;
      const limit = await applyAccess(services, sender, ({ access }) =>
        access.createLimit({
          ...{ principal, project: project?.id, server: server ?? undefined, tool: tool ?? undefined },
          ...{ perMinute: per_minute ?? undefined, concurrent: concurrent ?? undefined, isShared: shared },
        }),
      );
      return created(limitViewOf(services, limit, await readNames(services)), 'limits', limit.id);
    },
  }),
  route('DELETE', '/limits/:limit', {
    operationId: 'removeLimit',
    summary: 'Remove a limit',
    action: 'manage',
    authorizesItself: true,
    answers: { 204: null },
    async handle({ params, ...asking }) {
      const { services, sender } = asking;
      const limits = await needDatabase(services).store.access.listLimits();
      const limit = limits.find(({ id }) => id === params.limit);
      const noSuch = new SwitchboardError('not_found', `There is no limit ${JSON.stringify(params.limit)}.`);
      authorizeRow(asking, limit?.project, `limit ${params.limit}`, noSuch);
      if (limit === undefined) throw noSuch;
      await applyAccess(services, sender, ({ access }) => access.removeLimit(limit.id));
      return noContent;
    },
  }),
];

function limitViewOf(services: Services, limit: StoredLimit, names: Names): LimitView {
  const { id, principal, project, server = null, tool = null, isShared, createdAt } = limit;
  return {
    id,
    principal: principal === undefined ? null : { id: principal, name: names(principal) },
    project: projectRef(services, project),
    ...{ server, tool, per_minute: limit.perMinute ?? null, concurrent: limit.concurrent ?? null },
    shared: isShared,
    created_at: createdAt.toISOString(),
  };
}

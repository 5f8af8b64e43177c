import { z } from 'zod';
import { auditRoutes } from './audit.ts';
import { callRoutes } from './calls.ts';
import { canRoutes } from './can.ts';
import { chatRoutes } from './chat.ts';
import { grantRoutes } from './grants.ts';
import { groupRoutes } from './groups.ts';
import { hostedRoutes } from './hosted.ts';
import { ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { importRoutes } from './imports.ts';
import { keyRoutes } from './keys.ts';
import { limitRoutes } from './limits.ts';
import { productRoutes } from './products.ts';
import { projectRoutes } from './projects.ts';
import { ruleRoutes } from './rules.ts';
import { runRoutes } from './runs.ts';
import { secretRoutes } from './secrets.ts';
import { serverRoutes } from './servers.ts';
import { toolRoutes } from './tools.ts';
import { statusView } from './views.ts';
import { whoamiRoutes } from './whoami.ts';

const statusRoute = route('GET', '/status', {
  operationId: 'getStatus',
  summary: 'Get the status of Switchboard',
  action: 'any',
  answers: { 200: statusView },
  handle({ services, sender }) {
    const status = services.status();
    if (sender.principal.permissions.may('administer', undefined)) return ok(status);
    return ok({
      ...{ ...status, config: null, records: null, audit: null, sessions: null },
      database: { ...status.database, error: null },
    });
  },
});

let document: Record<string, unknown> | undefined;

/** Built on the first request, because most clients never ask for it. */
const openapiRoute = route('GET', '/openapi.json', {
  operationId: 'getOpenapi',
  summary: 'Get this API as an OpenAPI document',
  action: 'any',
  answers: { 200: z.looseObject({}) },
  async handle() {
    const { openapiOf } = await import('./http/openapi.ts');
    document ??= openapiOf(routes);
    return ok(document);
  },
});

export const routes: readonly Route[] = [
  statusRoute,
  ...projectRoutes,
  ...serverRoutes,
  ...toolRoutes,
  ...secretRoutes,
  ...productRoutes,
  ...callRoutes,
  ...chatRoutes,
  ...runRoutes,
  ...importRoutes,
  ...hostedRoutes,
  ...whoamiRoutes,
  ...keyRoutes,
  ...groupRoutes,
  ...grantRoutes,
  ...ruleRoutes,
  ...limitRoutes,
  ...canRoutes,
  ...auditRoutes,
  openapiRoute,
];

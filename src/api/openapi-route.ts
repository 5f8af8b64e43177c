import { z } from 'zod';
import { ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';

/** The document is made when it is first asked for: most never ask. */
export function openapiRoute(routes: () => readonly Route[]): Route {
  let document: Record<string, unknown> | undefined;
  return route({
    method: 'GET',
    path: '/openapi.json',
    operationId: 'getOpenapi',
    summary: 'This API as an OpenAPI document',
    answers: { 200: z.looseObject({}) },
    async handle() {
      const { openapiOf } = await import('./http/openapi.ts');
      document ??= openapiOf(routes());
      return ok(document);
    },
  });
}

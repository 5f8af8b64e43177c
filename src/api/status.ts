import type { Backend } from './backend.ts';
import { ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { statusView } from './views.ts';

export function statusRoutes(backend: Backend): Route[] {
  return [
    route({
      method: 'GET',
      path: '/status',
      operationId: 'getStatus',
      summary: 'How Switchboard itself is',
      answers: { 200: statusView },
      handle: async () => ok(await backend.status()),
    }),
  ];
}

import type { Backend } from './backend.ts';
import { type Route, route } from './http/route.ts';
import { importedFile, importQuery } from './inputs.ts';
import { importResult } from './views.ts';

export function importRoutes({ imports }: Backend): Route[] {
  return [
    route({
      method: 'POST',
      path: '/projects/:project/import',
      operationId: 'importServers',
      summary: "Add the servers of another program's file, or of a server.json of the registry",
      query: importQuery,
      text: importedFile,
      answers: { 201: importResult },
      async handle({ params, query, text }) {
        const result = await imports.import(params.project, text, query.replace);
        return { status: 201 as const, body: result };
      },
    }),
  ];
}

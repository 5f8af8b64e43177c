import { z } from 'zod';
import { actions } from '../../identity/roles.ts';
import { hostedView } from '../hosted-views.ts';
import { importResult, projectView, serverView } from '../views.ts';
import { answers, bodies, type Schemas } from './named-schemas.ts';
import type { Answers, Route } from './route.ts';

type Json = Record<string, unknown>;

const parameters: Record<string, string> = {
  project: "A project's id or name",
  name: "A server's name",
  tool: 'The name that clients see, or the qualified name of the tool',
  secret: "A secret's name",
  product: "A product's name",
  run: "A run's id",
  id: "A hosted server's id, or its name if that is unique",
  key: "A key's id, its name if that is unique, or project/name",
  principal: "A key's id, its name if that is unique, or project/name",
  group: "A group's id or name",
  grant: "A grant's id",
  rule: "A rule's id",
  limit: "A limit's id",
};

const statusTexts: Record<string, string> = { 200: 'Done', 201: 'Created', 204: 'Done' };

export function openapiOf(routes: readonly Route[]): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Switchboard',
      version: '1',
      description:
        'Projects of an MCP gateway: their servers, tools, secrets, products and call records, and who may do what. Every ' +
        'POST, PUT and PATCH needs Content-Type: application/json, even without a body.',
    },
    servers: [{ url: '/api/v1' }],
    // Without authentication, processes of the user need none.
    security: [{ key: [] }, {}],
    paths,
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'A key, or the token of the machine' },
      },
      schemas: { ...schemasOf(bodies, 'input'), ...schemasOf(answers, 'output') },
      responses: {
        Failure: { description: 'The error, and what to do about it', content: json(reference('Failure')) },
      },
    },
  };
}

function operationOf(route: Route): Json {
  const { operationId, summary, body } = route;
  return {
    operationId,
    summary,
    description: needsOf(route),
    tags: [tagOf(route.path)],
    parameters: parametersOf(route),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: json(schemaOf(body, bodies, 'input')) } }),
    responses: { ...responsesOf(route), default: { $ref: '#/components/responses/Failure' } },
  };
}

/** 'servers' for '/projects/:project/servers/:name'. */
function tagOf(path: string): string {
  const [first = '', , second] = path.split('/').slice(1);
  return second === undefined || first !== 'projects' ? first.replace('.json', '') : second;
}

function parametersOf({ path, query, isConditional }: Route): Json[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: parameters[name],
    schema: { type: 'string', minLength: 1 },
  }));
  const inQuery = Object.entries(query?.shape ?? {}).map(([name, schema]) => {
    const { description, ...rest } = jsonSchema(schema as z.ZodType, 'output');
    return {
      name,
      in: 'query',
      required: false,
      ...(description === undefined ? {} : { description }),
      schema: rest,
    };
  });
  const inHeader = {
    name: 'If-Match',
    in: 'header',
    required: false,
    description: 'The ETag of the version to change; without it, or with *, any version is changed',
    schema: { type: 'string', pattern: '^("[1-9][0-9]{0,14}"|\\*)$' },
  };
  return [...inPath, ...inQuery, ...(isConditional ? [inHeader] : [])];
}

/** The least role for it. */
function needsOf({ action, path, authorizesItself = false }: Route): string {
  if (action === 'any') return 'Needs no role.';
  const { role } = actions[action];
  const isOfProject = authorizesItself || path.includes(':project');
  return `Needs the role ${role}${isOfProject ? ' in the project' : ' in all projects'}.`;
}

function responsesOf({ answers: given, isStream = false, isLines = false }: Route): Json {
  return Object.fromEntries(
    Object.entries(given as Answers).map(([status, schema]) => [
      status,
      {
        description: statusTexts[status] ?? 'Done',
        ...headersOf(status, schema),
        ...(schema === null ? {} : { content: content(schema, isStream, isLines) }),
      },
    ]),
  );
}

function content(schema: z.ZodType, isStream: Route['isStream'], isLines: boolean): Json {
  const text = { schema: { type: 'string' } };
  const events = isStream ? { 'text/event-stream': text } : {};
  if (isStream === true) return events;
  const lines = isLines ? { 'application/jsonl': text } : {};
  return { ...json(schemaOf(schema, answers, 'output')), ...events, ...lines };
}

function headersOf(status: string, schema: z.ZodType | null): Json {
  const headers: Json = {};
  if (status === '201' && schema !== importResult) headers.Location = { schema: { type: 'string' } };
  if (schema === projectView || schema === serverView || schema === hostedView) {
    headers.ETag = { description: 'The version, for If-Match', schema: { type: 'string' } };
  }
  return Object.keys(headers).length === 0 ? {} : { headers };
}

function json(schema: Json): Json {
  return { 'application/json': { schema } };
}

function reference(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

function schemaOf(schema: z.ZodType, named: Schemas, io: 'input' | 'output'): Json {
  const name = Object.keys(named).find((candidate) => named[candidate] === schema);
  return name === undefined ? jsonSchema(schema, io) : reference(name);
}

function schemasOf(named: Schemas, io: 'input' | 'output'): Json {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io,
    uri: (id) => `#/components/schemas/${id}`,
    override: withoutNoise,
  });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, bare(schema)]));
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  return bare(z.toJSONSchema(schema, { io, override: withoutNoise }));
}

function bare({ $schema: _$schema, $id: _$id, ...schema }: Json): Json {
  return schema;
}

/** A format makes its pattern redundant. */
function withoutNoise({ jsonSchema }: { jsonSchema: { format?: string; pattern?: string } }): void {
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
}

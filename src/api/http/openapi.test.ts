import { describe, expect, it } from 'vitest';
import { startForTests } from '../../../test/helpers/api-client.ts';
import { routes } from '../routes.ts';

const { serve } = await startForTests();

interface Operation {
  operationId: string;
  parameters: { name: string; in: string; description?: string; schema: object }[];
  requestBody?: { content: Record<string, { schema: object }> };
  responses: Record<string, { $ref?: string; content?: object }>;
}

interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, { required?: string[]; properties?: object }> };
}

async function document(): Promise<Document> {
  const { ask } = await serve();
  const { status, body } = await ask('GET /openapi.json');
  expect(status).toBe(200);
  return body as unknown as Document;
}

describe('the OpenAPI document', () => {
  it('contains every route, and nothing else', async () => {
    const { openapi, paths } = await document();
    expect(openapi).toMatch(/^3\.1\./);
    const shown = Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, { operationId }]) => `${method} ${path} ${operationId}`),
    );
    const known = routes.map(
      ({ method, path, operationId }) =>
        `${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}')} ${operationId}`,
    );
    expect(shown.toSorted()).toEqual(known.toSorted());
    expect(new Set(routes.map(({ operationId }) => operationId)).size).toBe(routes.length);
  });

  it('resolves every reference', async () => {
    const whole = await document();
    const references = [...JSON.stringify(whole).matchAll(/"\$ref":"([^"]+)"/g)].map(([, to = '']) => to);
    expect(references.length).toBeGreaterThan(50);
    for (const reference of new Set(references)) {
      const steps = reference.replace('#/', '').split('/');
      const target = steps.reduce<unknown>(
        (value, step) => (value as Record<string, unknown>)?.[step],
        whole,
      );
      expect(target, reference).toBeTypeOf('object');
    }
  });

  it('describes every path parameter and an error response', async () => {
    const { paths } = await document();
    for (const [path, operations] of Object.entries(paths)) {
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      for (const { parameters, responses } of Object.values(operations)) {
        const inPath = parameters.filter((parameter) => parameter.in === 'path');
        expect(inPath.map(({ name }) => name)).toEqual(names);
        expect(inPath.every(({ description }) => description !== undefined)).toBe(true);
        expect(responses.default).toEqual({ $ref: '#/components/responses/Failure' });
      }
    }
  });

  it('uses the schemas that validate requests', async () => {
    const { paths, components } = await document();
    const create = paths['/projects/{project}/servers']!.post!;
    expect(create.requestBody!.content['application/json']!.schema).toEqual({
      $ref: '#/components/schemas/NewServer',
    });
    expect(components.schemas.NewServer).toMatchObject({
      required: ['name', 'transport', 'config'],
      additionalProperties: false,
      properties: { replicas: { type: 'integer', minimum: 1, maximum: 64 } },
    });
    expect(components.schemas.ServerList).toMatchObject({
      properties: { servers: { items: { $ref: '#/components/schemas/Server' } } },
    });
    const { parameters } = paths['/projects/{project}/calls']!.get!;
    expect(parameters.map(({ name }) => name)).toEqual([
      'project',
      'server',
      'tool',
      'status',
      'principal',
      'since',
      'until',
      'limit',
      'cursor',
    ]);
    const { parameters: conditional } = paths['/projects/{project}']!.patch!;
    expect(conditional.map(({ name }) => name)).toContain('If-Match');
  });
});

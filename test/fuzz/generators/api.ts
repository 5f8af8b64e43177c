import type { Random } from '../../soak/random.ts';
import { mutate } from './mutations.ts';
import { weighted } from './random.ts';

interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
  minimum?: number;
  maximum?: number;
}

interface Operation {
  operationId: string;
  parameters: { name: string; in: string; schema: Schema }[];
  requestBody?: { content: { 'application/json': { schema: Schema } } };
  responses: Record<string, unknown>;
}

export interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

export interface ApiCase {
  operationId: string;
  /** Documented success statuses; undefined if the method is not documented. */
  statuses: number[] | undefined;
  bytes: Buffer;
  isEndless: boolean;
  what: string;
}

/** Reused names, so that cases find what others have created. */
const names: Record<string, string[]> = {
  project: ['default', 'web', 'files', 'nobody'],
  name: ['github', 'files', 'spare', 'nobody'],
  tool: ['echo__count', 'spare__t', 'nobody'],
  secret: ['TOKEN', 'KEY'],
  product: ['kit', 'other'],
  run: ['00000000-0000-4000-8000-000000000000', 'x'],
  id: ['github', '00000000-0000-4000-8000-000000000000'],
};
const oddTexts = [
  '..',
  '__proto__',
  '%00',
  '%ff',
  'a%2Fb',
  '%',
  'x'.repeat(3_000),
  '%F0%9F%98%80',
  '*',
  "'; drop table kb.projects; --",
];
const oddValues: unknown[] = [
  null,
  0,
  -1,
  1.5,
  1e308,
  true,
  '',
  [],
  {},
  'x',
  '\0',
  '\ud800',
  '\u001b[2J',
  { a: { b: [] } },
  2 ** 53,
];

const secretReference = '$'.concat('{TOKEN}');

/** Valid values for the fields that decide how far a request gets. No command runs, and no address is external. */
const fitting: Record<string, readonly unknown[]> = {
  name: ['github', 'files', 'web', 'kit'],
  command: ['switchboard-no-such-program'],
  url: ['http://127.0.0.1:9/mcp'],
  transport: ['stdio', 'http', 'sse'],
  args: [['a', secretReference]],
  env: [{ A: 'b', B: secretReference }],
  config: [
    { command: 'switchboard-no-such-program', args: ['x'] },
    { url: 'http://127.0.0.1:9/mcp', headers: { A: secretReference } },
  ],
  image: ['mcp/time'],
  base_url: ['http://127.0.0.1:9'],
  value: ['short'],
  project: ['default', 'web'],
};

export class ApiGenerator {
  private readonly document: Document;
  private readonly operations: { method: string; path: string; operation: Operation }[];

  constructor(document: Document) {
    this.document = document;
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation,
      })),
    );
    // A limit would hold for the clients that behave too.
    this.operations = operations.filter(({ operation }) => operation.operationId !== 'createLimit');
  }

  generate(random: Random, index: number, host: string): ApiCase {
    const { method, path, operation } = random.pick(this.operations);
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => this.pathPart(random, name));
    const query = operation.parameters
      .filter((parameter) => parameter.in === 'query' && random.chance(0.5))
      .map(({ name, schema }) => `${name}=${this.queryValue(random, schema)}`);
    if (random.chance(0.05)) query.push(random.pick(['x=y', '%', '=', 'limit=1&limit=2', '\xff']));
    const search = query.length === 0 ? '' : `?${query.join('&')}`;
    const schema = operation.requestBody?.content['application/json'].schema;
    const body =
      schema === undefined && !random.chance(0.1) ? undefined : this.body(random, index, schema ?? {});
    const verb = random.chance(0.03) ? random.pick(['PUT', 'HEAD', 'OPTIONS', 'DELETE']) : method;
    const type = random.chance(0.97)
      ? 'application/json'
      : random.pick(['text/plain', '', 'application/json;charset=latin1']);
    const condition = random.chance(0.1)
      ? `If-Match: ${random.pick(['*', '"1"', '"0"', 'x', 'W/"1"'])}\r\n`
      : '';
    const sent = body ?? Buffer.alloc(0);
    const head = `${verb} /api/v1${filled}${search} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${type}\r\n${condition}Content-Length: ${sent.length}\r\n\r\n`;
    return {
      operationId: operation.operationId,
      statuses: verb === method ? Object.keys(operation.responses).map(Number).filter(Boolean) : undefined,
      bytes: Buffer.concat([Buffer.from(head, 'latin1'), sent]),
      isEndless: true,
      what: `${verb} ${operation.operationId}`,
    };
  }

  private pathPart(random: Random, name: string): string {
    return random.chance(0.9) ? random.pick(names[name] ?? ['x']) : random.pick(oddTexts);
  }

  private queryValue(random: Random, schema: Schema): string {
    const value = random.chance(0.7) ? this.value(random, schema, '', 0) : random.pick(oddTexts);
    return encodeURIComponent((typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed());
  }

  private body(random: Random, index: number, schema: Schema): Buffer {
    const value = this.value(random, schema, '', 0);
    const text = JSON.stringify(value) ?? 'null';
    return weighted<() => Buffer>(random, [
      [8, () => Buffer.from(text)],
      [1, () => withoutCanaries(mutate(random, Buffer.from(text), index).bytes)],
      [
        1,
        () =>
          Buffer.from(
            JSON.stringify({ ...(value as object), [random.pick(['extra', '__proto__', 'name'])]: 'x' }),
          ),
      ],
    ])();
  }

  /** A value that matches the schema, or nearly. */
  private value(random: Random, schema: Schema, key: string, depth: number): unknown {
    const known = fitting[key];
    if (known !== undefined && random.chance(0.85)) return random.pick(known);
    if (random.chance(0.04) && !(key in fitting)) return random.pick(oddValues);
    if (schema.$ref !== undefined) {
      return this.value(
        random,
        this.document.components.schemas[schema.$ref.split('/').at(-1)!] ?? {},
        key,
        depth,
      );
    }
    if (schema.const !== undefined) return schema.const;
    if (schema.enum !== undefined) return random.pick(schema.enum);
    const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf;
    if (choices !== undefined) return this.value(random, random.pick(choices), key, depth);
    switch (schema.type) {
      case 'object':
        return this.object(random, schema, depth);
      case 'array':
        return Array.from({ length: depth > 4 ? 0 : random.below(3) }, () =>
          this.value(random, schema.items ?? {}, '', depth + 1),
        );
      case 'integer':
      case 'number':
        return random.pick([schema.minimum ?? 0, schema.maximum ?? 10, 1, 7, 1_000]);
      case 'boolean':
        return random.chance(0.5);
      case 'null':
        return null;
      // Fields that may run a program or open a connection take only values from `fitting`.
      default:
        return key in fitting
          ? random.pick(fitting[key]!)
          : random.pick(['x', 'web', 'a b', '2026-01-01T00:00:00Z', '']);
    }
  }

  private object(
    random: Random,
    { properties = {}, required = [], additionalProperties }: Schema,
    depth: number,
  ): object {
    const made: Record<string, unknown> = {};
    for (const [key, schema] of Object.entries(properties)) {
      const isWanted = required.includes(key) ? !random.chance(0.03) : random.chance(0.3);
      if (isWanted && depth < 5) made[key] = this.value(random, schema, key, depth + 1);
    }
    if (typeof additionalProperties === 'object' && random.chance(0.5)) {
      made[random.pick(['a', 'B_C', 'x-y'])] = this.value(random, additionalProperties, '', depth + 1);
    }
    return made;
  }
}

/** Data written through the API is visible to all. */
function withoutCanaries(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('latin1').replaceAll(/canary-\d+-[\da-z]+\./g, ''), 'latin1');
}

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { expect } from 'vitest';
import { exchange, type RawAnswer } from '../helpers/raw-http.ts';

interface Content {
  'application/json'?: { schema: object };
}

interface Response {
  $ref?: string;
  headers?: Record<string, { required?: boolean }>;
  content?: Content;
}

interface Operation {
  operationId: string;
  responses: Record<string, Response>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object>; responses: Record<string, Response> };
}

export interface Answer {
  status: number;
  headers: RawAnswer['headers'];
  /** Empty if there is none. */
  body: Record<string, unknown>;
}

interface Question {
  /** The values of the path parameters. */
  at?: Record<string, string>;
  query?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

/** Calls the API by operation id, and checks each response against the OpenAPI document. */
export class Contract {
  /** Such as 'createServer 201'. */
  readonly seen = new Set<string>();
  private readonly url: string;
  private readonly document: Document;
  private readonly validator = new Ajv2020({ allErrors: true, strict: false });
  private readonly operations = new Map<string, { method: string; path: string; operation: Operation }>();

  private constructor(url: string, document: Document) {
    this.url = url;
    this.document = document;
    this.validator.addFormat('uuid', /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
    this.validator.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/);
    this.validator.addSchema(document, 'api');
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        this.operations.set(operation.operationId, { method: method.toUpperCase(), path, operation });
      }
    }
  }

  static async read(url: string): Promise<Contract> {
    const { text } = await exchange(`${url}/openapi.json`, { method: 'GET' });
    return new Contract(url, JSON.parse(text) as Document);
  }

  /** All documented responses, by operation and status. */
  get promised(): string[] {
    return [...this.operations].flatMap(([id, { operation }]) =>
      Object.keys(operation.responses)
        .filter((status) => status !== 'default')
        .map((status) => `${id} ${status}`),
    );
  }

  urlOf(operationId: string, { at = {}, query = '' }: Question = {}): string {
    const { path } = this.find(operationId);
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(at[name] ?? 'default'));
    return `${this.url}${filled}${query}`;
  }

  async ask(operationId: string, question: Question = {}): Promise<Answer> {
    const { method } = this.find(operationId);
    const { body, headers = {} } = question;
    const type: Record<string, string> =
      body === undefined && method !== 'POST' ? {} : { 'content-type': 'application/json' };
    const url = this.urlOf(operationId, question);
    const answer = await exchange(url, { method, headers: { ...type, ...headers }, body });
    this.check(operationId, answer);
    const answered = (answer.json ?? {}) as Record<string, unknown>;
    return { status: answer.status, headers: answer.headers, body: answered };
  }

  checkValue(schema: string, value: unknown): void {
    this.expectValid(schema, this.validatorOf(`#/components/schemas/${schema}`), value);
  }

  private check(operationId: string, { status, headers, text, json }: RawAnswer): void {
    const what = `${operationId} ${status}`;
    const { responses } = this.find(operationId).operation;
    const promised = responses[status];
    if (promised === undefined) expect(status, `${what}: ${text}`).toBeGreaterThanOrEqual(400);
    this.seen.add(promised === undefined ? `${operationId} failure` : what);
    const response = this.resolve(promised ?? responses.default!);
    for (const [name, { required = false }] of Object.entries(response.headers ?? {})) {
      if (required) expect(headers, what).toHaveProperty(name.toLowerCase());
    }
    const schema = response.content?.['application/json']?.schema;
    if (schema === undefined) {
      expect(text, what).toBe('');
      return;
    }
    expect(headers['content-type'], what).toBe('application/json');
    this.expectValid(what, this.compile(schema), json);
  }

  private expectValid(what: string, validate: ValidateFunction, value: unknown): void {
    const isValid = validate(value);
    expect({ isValid, errors: validate.errors ?? [] }, `${what}: ${JSON.stringify(value)}`).toEqual({
      isValid: true,
      errors: [],
    });
  }

  private compile(schema: object): ValidateFunction {
    return '$ref' in schema ? this.validatorOf(String(schema.$ref)) : this.validator.compile(schema);
  }

  private validatorOf(reference: string): ValidateFunction {
    return this.validator.getSchema(`api${reference}`)!;
  }

  private resolve(response: Response): Response {
    const name = response.$ref?.split('/').at(-1);
    return name === undefined ? response : this.document.components.responses[name]!;
  }

  private find(operationId: string) {
    const found = this.operations.get(operationId);
    if (found === undefined) throw new Error(`The document has no operation ${operationId}.`);
    return found;
  }
}

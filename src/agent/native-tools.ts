import { SwitchboardError } from '../errors.ts';
import type { ToolOutcome } from './toolbox.ts';

export type JsonSchema = Record<string, unknown>;

/** A schema of any library that follows Standard Schema, as zod does. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

type StandardResult<Output> = { readonly value: Output; readonly issues?: undefined } | StandardFailure;

interface StandardFailure {
  readonly issues: readonly {
    readonly message: string;
    readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
  }[];
}

/** The parsed input. A plain JSON Schema does not validate: the handler gets the arguments unchanged. */
type InputOf<Schema> = Schema extends StandardSchema<infer Output> ? Output : Record<string, unknown>;

export interface NativeContext {
  /** Aborted when the result is no longer needed. */
  signal: AbortSignal | undefined;
}

export interface NativeTool<Schema extends StandardSchema | JsonSchema = StandardSchema | JsonSchema> {
  name: string;
  description?: string | undefined;
  /** A schema of zod (4.2 or later) or of another library that converts it to JSON Schema, or a JSON Schema. */
  input: Schema;
  /** Returns a text, a result of `tools/call`, or any JSON value. The model gets the message of a thrown error. */
  run(input: InputOf<Schema>, context: NativeContext): unknown;
}

/** Gives the handler of a native tool the type of its schema. */
export function nativeTool<Schema extends StandardSchema | JsonSchema>(tool: NativeTool<Schema>): NativeTool {
  return tool as unknown as NativeTool;
}

export function jsonSchemaOf({ name, input }: NativeTool): JsonSchema {
  if (!isStandard(input)) return input;
  const { jsonSchema } = input['~standard'] as { jsonSchema?: { input?(options: object): JsonSchema } };
  try {
    const converted = jsonSchema?.input?.({ target: 'draft-2020-12' });
    if (converted !== undefined) return converted;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw noJsonSchema(name, `its schema cannot be converted to JSON Schema (${why})`, error);
  }
  throw noJsonSchema(name, `its schema, of ${input['~standard'].vendor}, cannot be converted to JSON Schema`);
}

/** Validates the arguments first, if the schema can. */
export async function runNative(
  tool: NativeTool,
  given: Record<string, unknown>,
  context: NativeContext,
): Promise<ToolOutcome> {
  if (!isStandard(tool.input)) return outcomeOf(await tool.run(given, context));
  const checked = await tool.input['~standard'].validate(given);
  if (checked.issues === undefined) return outcomeOf(await tool.run(checked.value as never, context));
  const problems = checked.issues.map(({ path = [], message }) => {
    const place = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
    return place === '' ? message : `${place}: ${message}`;
  });
  return failed(`The arguments are invalid. ${problems.join('; ')}`);
}

function outcomeOf(given: unknown): ToolOutcome {
  if (given === undefined) return { content: [] };
  if (typeof given === 'string') return { content: [{ type: 'text', text: given }] };
  if (isOutcome(given)) return given;
  return { content: [{ type: 'text', text: JSON.stringify(given) }], structuredContent: given };
}

function failed(why: string): ToolOutcome {
  return { content: [{ type: 'text', text: why }], isError: true };
}

function isOutcome(value: unknown): value is ToolOutcome {
  if (typeof value !== 'object' || value === null || !('content' in value)) return false;
  const { content } = value;
  return Array.isArray(content) && content.every((item) => typeof item?.type === 'string');
}

function isStandard(schema: StandardSchema | JsonSchema): schema is StandardSchema {
  return '~standard' in schema;
}

function noJsonSchema(tool: string, what: string, cause?: unknown): SwitchboardError {
  return new SwitchboardError(
    'invalid_config',
    `The native tool "${tool}" cannot be offered: ${what}. Use zod 4.2 or later, or a JSON Schema.`,
    { cause },
  );
}

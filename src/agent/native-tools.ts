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

/** What a schema lets through. What comes for a plain JSON Schema is not checked: the handler gets it as it came. */
type InputOf<Schema> = Schema extends StandardSchema<infer Output> ? Output : Record<string, unknown>;

export interface NativeContext {
  /** Says so when nobody waits for the result any more. */
  signal: AbortSignal | undefined;
}

/** A tool that runs in this process. */
export interface NativeTool<Schema extends StandardSchema | JsonSchema = StandardSchema | JsonSchema> {
  name: string;
  description?: string | undefined;
  /** A schema of zod (4.2 and later) or of another library that can give it as JSON Schema, or a JSON Schema. */
  input: Schema;
  /** Gives a text, a whole result of MCP, or anything that is JSON. What it throws is told to the model. */
  run(input: InputOf<Schema>, context: NativeContext): unknown;
}

/** Gives the handler of a native tool the type of its schema. */
export function nativeTool<Schema extends StandardSchema | JsonSchema>(tool: NativeTool<Schema>): NativeTool {
  return tool as unknown as NativeTool;
}

/** The schema of a tool's arguments, as models take it. */
export function jsonSchemaOf({ name, input }: NativeTool): JsonSchema {
  if (!isStandard(input)) return input;
  const { jsonSchema } = input['~standard'] as { jsonSchema?: { input?(options: object): JsonSchema } };
  try {
    const converted = jsonSchema?.input?.({ target: 'draft-2020-12' });
    if (converted !== undefined) return converted;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw noJsonSchema(name, `its schema cannot be written as JSON Schema (${why})`, error);
  }
  throw noJsonSchema(
    name,
    `its schema, of ${input['~standard'].vendor}, does not say what it is as JSON Schema`,
  );
}

/** Runs a tool: its arguments are checked before, where its schema can do that. */
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
  return failed(`The arguments are wrong. ${problems.join('; ')}`);
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
    `The native tool "${tool}" cannot be offered: ${what}. Use zod 4.2 or later, or give a JSON Schema.`,
    { cause },
  );
}

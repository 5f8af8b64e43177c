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

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly unknown[] | undefined;
      }[];
    };

/** What a schema lets through. What fits a plain JSON Schema is not checked: the handler gets it as it came. */
export type InputOf<Schema> = Schema extends StandardSchema<infer Output> ? Output : Record<string, unknown>;

export interface NativeContext {
  /** The chat was cancelled. */
  signal: AbortSignal | undefined;
}

/** A tool that runs in this process. */
export interface NativeTool<Schema extends StandardSchema | JsonSchema = StandardSchema | JsonSchema> {
  name: string;
  description?: string | undefined;
  /** A schema of zod or another library that follows Standard Schema, or a JSON Schema. */
  input: Schema;
  /** Gives a text, a whole result of MCP, or anything that is JSON. What it throws is told to the model. */
  run(input: InputOf<Schema>, context: NativeContext): unknown;
}

/** Gives the handler of a native tool the type of its schema. */
export function nativeTool<Schema extends StandardSchema | JsonSchema>(tool: NativeTool<Schema>): NativeTool {
  return tool as unknown as NativeTool;
}

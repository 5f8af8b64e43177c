import { usageError } from '../exit.ts';

type Schema = Record<string, unknown>;
type JsonType = 'string' | 'number' | 'integer' | 'boolean' | 'object' | 'array' | 'null';

const typeNames: Record<JsonType, string> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'a JSON object',
  array: 'a JSON array',
  null: 'null',
};
/** Schemas may be recursive. */
const MAX_DEPTH = 16;

/** Undefined if the arguments are `key=value` words instead of one JSON object. */
export function readObject(words: string[]): Record<string, unknown> | undefined {
  const [first] = words;
  if (words.length !== 1 || !first!.trimStart().startsWith('{')) return undefined;
  const parsed = parse(first!);
  if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown>;
  throw usageError(`The arguments are not a JSON object: ${first}`);
}

/** Parses `key=value` words by the tool's input schema. Without a schema, a value is JSON if it parses, else text. */
export function readWords(words: string[], inputSchema: unknown): Record<string, unknown> {
  const root = isSchema(inputSchema) ? inputSchema : {};
  const properties = isSchema(root.properties) ? root.properties : {};
  return Object.fromEntries(
    words.map((word) => {
      const equals = word.indexOf('=');
      if (equals < 1) throw usageError(`"${word}" is neither key=value nor a JSON object.`);
      const key = word.slice(0, equals);
      const types = Object.hasOwn(properties, key) ? typesOf(properties[key], root) : undefined;
      return [key, readValue(key, word.slice(equals + 1), types)];
    }),
  );
}

function readValue(key: string, text: string, types: ReadonlySet<JsonType> | undefined): unknown {
  const parsed = parse(text);
  if (types === undefined) return parsed === undefined ? text : parsed;
  const isText = types.has('string');
  // Where text is allowed, `null` and quoted values stay text; null needs JSON arguments.
  if (
    parsed !== undefined &&
    fits(parsed, types) &&
    !(isText && (parsed === null || typeof parsed === 'string'))
  ) {
    return parsed;
  }
  if (isText) return text;
  const expected = [...types].map((type) => typeNames[type]).join(' or ');
  throw usageError(`"${key}" must be ${expected}, and ${JSON.stringify(text)} is not.`);
}

function fits(value: unknown, types: ReadonlySet<JsonType>): boolean {
  if (value === null) return types.has('null');
  if (Array.isArray(value)) return types.has('array');
  if (typeof value === 'number')
    return types.has('number') || (types.has('integer') && Number.isInteger(value));
  return types.has(typeof value as JsonType);
}

/** Undefined if the schema allows any type. */
function typesOf(schema: unknown, root: Schema, depth = 0): Set<JsonType> | undefined {
  if (!isSchema(schema) || depth > MAX_DEPTH) return undefined;
  if (typeof schema.$ref === 'string') return typesOf(referred(schema.$ref, root), root, depth + 1);
  if (schema.type !== undefined) return known([schema.type].flat());
  if (Array.isArray(schema.enum)) return known(schema.enum.map(typeOfValue));
  if ('const' in schema) return known([typeOfValue(schema.const)]);
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices)) {
    const types = choices.map((choice) => typesOf(choice, root, depth + 1));
    return types.includes(undefined) ? undefined : new Set(types.flatMap((each) => [...each!]));
  }
  const parts = Array.isArray(schema.allOf) ? schema.allOf : [];
  return parts.map((part) => typesOf(part, root, depth + 1)).find((types) => types !== undefined);
}

function known(types: unknown[]): Set<JsonType> | undefined {
  const isKnown = (type: unknown): type is JsonType =>
    typeof type === 'string' && Object.hasOwn(typeNames, type);
  return types.length > 0 && types.every(isKnown) ? new Set(types) : undefined;
}

function typeOfValue(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** Resolves a reference within the schema: `#/$defs/Level`. */
function referred(reference: string, root: Schema): unknown {
  if (!reference.startsWith('#/')) return undefined;
  const steps = reference
    .slice(2)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return steps.reduce<unknown>((value, step) => (isSchema(value) ? value[step] : undefined), root);
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

import type { AgentTool } from '../toolbox.ts';
import { type Shape, shapeOf } from './flat-schema.ts';
import { mapSubschemas, type Schema, sound } from './json-schema.ts';

export interface ClaudeSchema {
  schema: Schema & { type: 'object' };
  /** Maps the tool's argument names to those in the schema, and back. */
  renamed(args: Record<string, unknown>): Record<string, unknown>;
}

/** The property names that the API accepts at the top level. Nested ones are free. */
const validName = /^[a-zA-Z0-9_.-]{1,64}$/;
const invalidCharacters = /[^a-zA-Z0-9_.-]+/g;
const MAX_NAME = 64;

/** More would not help a model. */
const MAX_CHOICES = 20;

const combining = ['$ref', 'allOf', 'anyOf', 'oneOf'];
/** Keywords that refer to properties by their original names. */
const byName = ['not', 'if', 'then', 'else', 'propertyNames', 'patternProperties', 'unevaluatedProperties'];
const alsoByName = [
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  'const',
  'enum',
  'default',
  'examples',
];

/**
 * Converts a schema for Claude's API, which requires a plain object at the top, without alternatives and with plain names.
 * The result accepts everything that the original does, with invalid names replaced, and possibly more: the server validates
 * the arguments anyway. Undefined if no object matches the schema.
 */
export function claudeSchema(original: Schema): ClaudeSchema | undefined {
  const { $schema: _, ...whole } = sound(original);
  const shape = shapeOf(whole);
  if (shape === undefined) return undefined;
  const swaps = swapsOf([...shape.properties.keys(), ...shape.required]);
  const isCombined = combining.some((keyword) => keyword in whole);
  if (!isCombined && swaps.size === 0)
    return { schema: { ...whole, type: 'object' }, renamed: (args) => args };
  const without = new Set([
    ...combining,
    'unevaluatedProperties',
    ...(swaps.size === 0 ? [] : [...byName, ...alsoByName]),
    ...(swaps.size > 0 && 'patternProperties' in whole ? ['additionalProperties'] : []),
  ]);
  const rest = Object.entries(whole).filter(([keyword]) => !without.has(keyword));
  const flat = { ...Object.fromEntries(rest), ...described(whole, shape, swaps), type: 'object' as const };
  return {
    schema: withOriginal(flat, whole),
    renamed: (args) =>
      Object.fromEntries(Object.entries(args).map(([name, value]) => [swaps.get(name) ?? name, value])),
  };
}

/** Invalid names and their unique replacements, in both directions. */
function swapsOf(names: readonly string[]): ReadonlyMap<string, string> {
  const swaps = new Map<string, string>();
  const used = new Set(names);
  for (const name of new Set(names)) {
    if (validName.test(name)) continue;
    const plain = name.replaceAll(invalidCharacters, '_').slice(0, MAX_NAME) || '_';
    let free = plain;
    for (let number = 2; used.has(free); number++) {
      free = `${plain.slice(0, MAX_NAME - 1 - String(number).length)}_${number}`;
    }
    used.add(free);
    swaps.set(name, free).set(free, name);
  }
  return swaps;
}

function described({ description }: Schema, shape: Shape, swaps: ReadonlyMap<string, string>): Schema {
  const named = (name: string) => swaps.get(name) ?? name;
  const properties = [...shape.properties].map(([name, schema]): [string, unknown] => {
    if (!swaps.has(name)) return [name, schema];
    const titled = typeof schema === 'object' ? { title: name, ...schema } : { title: name };
    return [named(name), schema === false ? false : titled];
  });
  const choices = shape.choices.flatMap((sets) => {
    if (sets.length > MAX_CHOICES) return [];
    return [`Requires one of these: ${sets.map((names) => names.map(named).join(' and ')).join('; or ')}.`];
  });
  const text = [...(typeof description === 'string' ? [description] : []), ...choices].join('\n');
  return {
    ...(text === '' ? {} : { description: text }),
    ...(properties.length === 0 ? {} : { properties: Object.fromEntries(properties) }),
    ...(shape.required.size === 0 ? {} : { required: [...shape.required].map(named) }),
  };
}

/** Redirects references to moved or renamed parts to the original, which is added to the definitions. */
function withOriginal<Flat extends Schema>(flat: Flat, original: Schema): Flat {
  const definitions = (flat.$defs ?? {}) as Schema;
  let place = 'arguments';
  while (Object.hasOwn(definitions, place)) place += '_';
  let isReferred = false;
  const moved = (schema: Schema): Schema => {
    const { $ref: reference } = schema;
    const redirected = typeof reference === 'string' && isMoved(reference);
    isReferred ||= redirected;
    const inner = mapSubschemas(schema, moved);
    return redirected ? { ...inner, $ref: `#/$defs/${place}${reference.slice(1)}` } : inner;
  };
  const result = moved(flat) as Flat;
  if (!isReferred) return result;
  const { $defs: _, definitions: __, $id: ___, ...kept } = original;
  return { ...result, $defs: { ...(result.$defs as Schema | undefined), [place]: moved(kept) } };
}

function isMoved(reference: string): boolean {
  return reference === '#' || (reference.startsWith('#/') && !/^#\/(?:\$defs|definitions)\//.test(reference));
}

export interface OfferedTool extends ClaudeSchema {
  tool: AgentTool;
}

/** Converts tools for Claude's API. A tool that the API rejects is excluded from then on. */
export class OfferedTools {
  /** By the original schema: the converted one, or why the tool is excluded. */
  private readonly known = new WeakMap<object, ClaudeSchema | string>();

  offer(tools: readonly AgentTool[], warned: (message: string) => void): OfferedTool[] {
    return tools.flatMap((tool) => {
      const found = this.of(tool);
      if (typeof found !== 'string') return [{ tool, ...found }];
      warned(`The tool "${tool.name}" of server "${tool.server}" is not offered: ${found}`);
      return [];
    });
  }

  exclude({ inputSchema }: AgentTool, why: string): void {
    this.known.set(inputSchema, why);
  }

  private of({ inputSchema }: AgentTool): ClaudeSchema | string {
    const known = this.known.get(inputSchema);
    if (known !== undefined) return known;
    const found = claudeSchema(inputSchema) ?? 'its arguments are not an object.';
    this.known.set(inputSchema, found);
    return found;
  }
}

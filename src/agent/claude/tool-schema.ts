import { type Shape, shapeOf } from './flat-schema.ts';
import { mapSubschemas, type Schema, sound } from './json-schema.ts';

/** The schema of a tool's arguments as Claude's API takes it. */
export interface ClaudeSchema {
  schema: Schema & { type: 'object' };
  /** From the tool's own names of its arguments to those in the schema, and the other way round: it does both. */
  renamed(args: Record<string, unknown>): Record<string, unknown>;
}

/** What the API takes as the name of a property of the arguments themselves. What is deeper in them may have any. */
const nameTaken = /^[a-zA-Z0-9_.-]{1,64}$/;
const notTaken = /[^a-zA-Z0-9_.-]+/g;
const MAX_NAME = 64;

/** More would not help a model. */
const MAX_CHOICES = 20;

const combining = ['$ref', 'allOf', 'anyOf', 'oneOf'];
/** What may speak of properties by the names that they have no more. */
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
 * A schema that Claude's API takes, for one that it may refuse: at the top it has to be a plain object, without alternatives,
 * and with plain names. It lets through all that the first one does, under other names where those are not taken, and may let
 * through more: its server checks the arguments anyway. Undefined where no object fits the schema, so that no call could be right.
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

/** Names that are not taken, with the ones that stand for them, in both directions: no two arguments ever get one name. */
function swapsOf(names: readonly string[]): ReadonlyMap<string, string> {
  const swaps = new Map<string, string>();
  const used = new Set(names);
  for (const name of new Set(names)) {
    if (nameTaken.test(name)) continue;
    const plain = name.replaceAll(notTaken, '_').slice(0, MAX_NAME) || '_';
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
    return [
      `Has to have one of these: ${sets.map((names) => names.map(named).join(' and ')).join('; or ')}.`,
    ];
  });
  const words = [...(typeof description === 'string' ? [description] : []), ...choices].join('\n');
  return {
    ...(words === '' ? {} : { description: words }),
    ...(properties.length === 0 ? {} : { properties: Object.fromEntries(properties) }),
    ...(shape.required.size === 0 ? {} : { required: [...shape.required].map(named) }),
  };
}

/** References to what has moved or has other names now lead to the original, which is kept beside the definitions. */
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

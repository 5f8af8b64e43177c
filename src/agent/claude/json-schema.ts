import { isObject } from '../../json.ts';

/** JSON Schema as Claude's API checks it: draft 2020-12. */
export type Schema = Record<string, unknown>;

type Kind =
  | 'schema'
  | 'schemas'
  | 'schema map'
  | 'schema or names map'
  | 'names map'
  | 'names'
  | 'type'
  | 'text'
  | 'number'
  | 'positive'
  | 'count'
  | 'flag'
  | 'list';

/** The type of each keyword's value. Unknown keywords may have any value. */
const kinds = new Map<string, Kind>(
  Object.entries({
    ...every('text', '$id', '$schema', '$ref', '$anchor', '$dynamicRef', '$dynamicAnchor', '$comment'),
    ...every('text', 'title', 'description', 'format', 'pattern', 'contentEncoding', 'contentMediaType'),
    ...every('schema map', '$defs', 'definitions', 'properties', 'patternProperties', 'dependentSchemas'),
    ...every('schemas', 'allOf', 'anyOf', 'oneOf', 'prefixItems'),
    ...every('schema', 'items', 'contains', 'additionalProperties', 'propertyNames', 'not', 'if', 'then'),
    ...every('schema', 'else', 'unevaluatedItems', 'unevaluatedProperties', 'contentSchema'),
    ...every('number', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'),
    ...every('count', 'minLength', 'maxLength', 'minItems', 'maxItems', 'minContains', 'maxContains'),
    ...every('count', 'minProperties', 'maxProperties'),
    ...every('flag', 'uniqueItems', 'deprecated', 'readOnly', 'writeOnly'),
    ...every('list', 'enum', 'examples'),
    ...every('type', 'type'),
    ...every('positive', 'multipleOf'),
    ...every('names', 'required'),
    ...every('names map', 'dependentRequired'),
    ...every('schema or names map', 'dependencies'),
  }),
);

const types: unknown[] = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];

/**
 * Drops keywords with invalid values, and converts tuples of older drafts. The result never accepts less than the original, and
 * is the same object if nothing changed.
 */
export function sound(schema: Schema): Schema {
  const tuple = Array.isArray(schema.items) ? tupleOf(schema) : schema;
  const changed = new Set<string>();
  const kept = Object.entries(tuple).flatMap(([keyword, value]): [string, unknown][] => {
    const better = soundValue(kinds.get(keyword), value);
    if (better !== value) changed.add(keyword);
    return better === undefined ? [] : [[keyword, better]];
  });
  if (changed.size === 0) return tuple;
  return Object.fromEntries(kept.flatMap((entry) => withoutNarrowing(entry, changed, tuple)));
}

/** Returns the same object if no direct subschema changes. */
export function mapSubschemas(schema: Schema, replaced: (sub: Schema) => Schema): Schema {
  const one = (value: unknown) => (isObject(value) ? replaced(value) : value);
  return mapValues(schema, (value, keyword) => {
    switch (kinds.get(keyword)) {
      case 'schema':
        return one(value);
      case 'schemas':
        return Array.isArray(value) ? mapItems(value, one) : value;
      case 'schema map':
      case 'schema or names map':
        return isObject(value) ? mapValues(value, one) : value;
      default:
        return value;
    }
  });
}

/** Drops or widens keywords that reject more when a subschema accepts more, such as negations. */
function withoutNarrowing(
  [keyword, value]: [string, unknown],
  changed: ReadonlySet<string>,
  { anyOf }: Schema,
): [string, unknown][] {
  switch (keyword) {
    case 'not':
    case 'if':
      return changed.has(keyword) ? [] : [[keyword, value]];
    case 'then':
    case 'else':
      return changed.has('if') ? [] : [[keyword, value]];
    case 'oneOf':
      if (!changed.has('oneOf')) return [[keyword, value]];
      return anyOf === undefined ? [['anyOf', value]] : [];
    case 'maxContains':
      return changed.has('contains') ? [] : [[keyword, value]];
    case 'unevaluatedItems':
    case 'unevaluatedProperties':
      return [];
    default:
      return [[keyword, value]];
  }
}

/** Undefined if the value is invalid for the keyword. */
function soundValue(kind: Kind | undefined, value: unknown): unknown {
  switch (kind) {
    case undefined:
      return value;
    case 'schema':
      return isSchema(value) ? soundSchema(value) : undefined;
    case 'schemas':
      return Array.isArray(value) && value.length > 0 ? mapItems(value, soundSchema) : undefined;
    case 'schema map':
      return isObject(value) ? mapValues(value, soundSchema) : undefined;
    case 'schema or names map':
      return isObject(value)
        ? mapValues(value, (each) => (isNames(each) ? each : soundSchema(each)))
        : undefined;
    default:
      return isPlain(kind, value) ? value : undefined;
  }
}

function isPlain(kind: Exclude<Kind, `schema${string}`>, value: unknown): boolean {
  switch (kind) {
    case 'text':
      return typeof value === 'string';
    case 'flag':
      return typeof value === 'boolean';
    case 'list':
      return Array.isArray(value);
    case 'number':
      return !Number.isNaN(numberOf(value));
    case 'positive':
      return numberOf(value) > 0;
    case 'count':
      return Number.isInteger(numberOf(value)) && numberOf(value) >= 0;
    case 'names':
      return isNames(value);
    case 'names map':
      return isObject(value) && Object.values(value).every(isNames);
    case 'type':
      if (!Array.isArray(value)) return types.includes(value);
      return value.length > 0 && value.every((each) => types.includes(each)) && isUnique(value);
  }
}

/** An invalid schema accepts anything. */
function soundSchema(value: unknown): unknown {
  if (!isSchema(value)) return true;
  return typeof value === 'boolean' ? value : sound(value);
}

function tupleOf({ items, additionalItems, ...rest }: Schema): Schema {
  const list = items as unknown[];
  return {
    ...rest,
    ...(list.length === 0 ? {} : { prefixItems: list }),
    ...(additionalItems === undefined ? {} : { items: additionalItems }),
  };
}

function isSchema(value: unknown): value is Schema | boolean {
  return typeof value === 'boolean' || (isObject(value) && Number.isNaN(numberOf(value)));
}

/** The JSON parser keeps numbers that a double cannot hold as raw text. */
function numberOf(value: unknown): number {
  if (typeof value === 'number') return value;
  const isRaw = isObject(value) && Object.getPrototypeOf(value) === null && typeof value.rawJSON === 'string';
  return isRaw ? Number(value.rawJSON) : Number.NaN;
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string') && isUnique(value);
}

function isUnique(values: readonly unknown[]): boolean {
  return new Set(values).size === values.length;
}

function mapItems(items: readonly unknown[], map: (item: unknown) => unknown): readonly unknown[] {
  const mapped = items.map(map);
  return mapped.every((item, index) => item === items[index]) ? items : mapped;
}

function mapValues(record: Schema, map: (value: unknown, key: string) => unknown): Schema {
  let isChanged = false;
  const mapped = Object.entries(record).map(([key, value]): [string, unknown] => {
    const replaced = map(value, key);
    isChanged ||= replaced !== value;
    return [key, replaced];
  });
  return isChanged ? Object.fromEntries(mapped) : record;
}

function every(kind: Kind, ...keywords: string[]): Record<string, Kind> {
  return Object.fromEntries(keywords.map((keyword) => [keyword, kind]));
}

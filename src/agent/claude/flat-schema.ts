import { isObject } from '../../json.ts';
import type { Schema } from './json-schema.ts';

/** The constraints of a schema on an object. */
export interface Shape {
  properties: ReadonlyMap<string, unknown>;
  required: ReadonlySet<string>;
  /** For each choice, an object must have all properties of at least one set. */
  choices: readonly Choice[];
}

type Choice = readonly (readonly string[])[];

/** Ends the walk of recursive schemas. Parts beyond the limit accept anything. */
const MAX_PARTS = 200;

const anything: Shape = { properties: new Map(), required: new Set(), choices: [] };

/**
 * Flattens a schema and everything it combines; undefined if no object matches. For alternatives, a property may match any of
 * them, and only those required by all are required.
 */
export function shapeOf(root: Schema): Shape | undefined {
  let parts = 0;
  const visit = (schema: unknown): Shape | undefined => {
    if (schema === false) return undefined;
    if (!isObject(schema) || ++parts > MAX_PARTS) return anything;
    if (![schema.type ?? 'object'].flat().includes('object')) return undefined;
    let shape: Shape | undefined = ownShape(schema);
    const conjuncts = [...('$ref' in schema ? [resolve(root, schema.$ref)] : []), ...listOf(schema.allOf)];
    for (const part of conjuncts) shape = intersect(shape, visit(part));
    for (const alternatives of [schema.anyOf, schema.oneOf]) {
      if (alternatives !== undefined) shape = intersect(shape, unite(listOf(alternatives).map(visit)));
    }
    return shape;
  };
  return visit(root);
}

function ownShape({ properties, required }: Schema): Shape {
  return {
    properties: new Map(isObject(properties) ? Object.entries(properties) : []),
    required: new Set(Array.isArray(required) ? (required as string[]) : []),
    choices: [],
  };
}

function intersect(one: Shape | undefined, other: Shape | undefined): Shape | undefined {
  if (one === undefined || other === undefined) return undefined;
  const properties = new Map(one.properties);
  for (const [name, schema] of other.properties) {
    properties.set(name, properties.has(name) ? mergeSchemas(properties.get(name), schema) : schema);
  }
  return {
    properties,
    required: one.required.union(other.required),
    choices: [...one.choices, ...other.choices],
  };
}

function unite(shapes: readonly (Shape | undefined)[]): Shape | undefined {
  const possible = shapes.filter((shape) => shape !== undefined);
  const [first, ...others] = possible;
  if (first === undefined) return undefined;
  const names = new Set(possible.flatMap(({ properties }) => [...properties.keys()]));
  const required = others.reduce((common, shape) => common.intersection(shape.required), first.required);
  const properties = new Map<string, unknown>();
  for (const name of names) {
    const schemas = possible.flatMap((shape) =>
      shape.properties.has(name) ? [shape.properties.get(name)] : [],
    );
    const distinct = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
    properties.set(name, distinct.length === 1 ? distinct[0] : { anyOf: distinct });
  }
  const choice = possible.map((shape) => [...shape.required.difference(required)]);
  return { properties, required, choices: choice.every(({ length }) => length > 0) ? [choice] : [] };
}

function mergeSchemas(one: unknown, other: unknown): unknown {
  if (acceptsAnything(one) || JSON.stringify(one) === JSON.stringify(other)) return other;
  if (acceptsAnything(other)) return one;
  if (isObject(one) && isObject(other) && !('anyOf' in one) && Object.keys(other).join() === 'anyOf') {
    return { ...one, ...other };
  }
  return { allOf: [one, other] };
}

function acceptsAnything(schema: unknown): boolean {
  return schema === true || (isObject(schema) && Object.keys(schema).length === 0);
}

/** Resolves references within the same schema; others accept anything. */
function resolve(root: Schema, reference: unknown): unknown {
  if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) return true;
  let node: unknown = root;
  for (const step of reference.split('/').slice(1)) {
    const key = unescaped(step);
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, key)) return true;
    node = (node as Schema)[key];
  }
  return node;
}

function unescaped(step: string): string {
  return decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

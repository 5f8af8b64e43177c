import { z } from 'zod';
import { similarTo, synonymOf } from '../../config/keys.ts';
import { invalidInput, MAX_PROBLEMS, type Problem } from './problems.ts';

/** Names for our keys in files and in other programs, besides those that files take. */
const synonyms: Record<string, string> = {
  type: 'transport',
  disabled: 'enabled',
  replica_count: 'replicas',
};

/** The value as the schema makes it. Throws an error that names everything that is wrong with it. */
export function check<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  const lost = lostNames(schema, value, []);
  if (parsed.success && lost.length === 0) return parsed.data;
  const issues = parsed.error?.issues.slice(0, MAX_PROBLEMS) ?? [];
  throw invalidInput([...lost, ...issues.flatMap((issue) => problemsOf(issue, schema))]);
}

/** Maps lose what is named so, without a word: it would look as if it had been taken. */
function lostNames(schema: unknown, value: unknown, path: PropertyKey[]): Problem[] {
  if (typeof value !== 'object' || value === null) return [];
  const isList = Array.isArray(value);
  const plain = formOf(unwrapped(schema), isList);
  const isLost = plain instanceof z.ZodRecord && Object.hasOwn(value, '__proto__');
  const own = isLost ? [{ path: [...path, '__proto__'], message: 'must not be "__proto__"' }] : [];
  const inner = Object.entries(value).flatMap(([key, each]) => {
    const step = isList ? Number(key) : key;
    const known = inside(plain, step);
    return known === undefined ? [] : lostNames(known, each, [...path, step]);
  });
  return [...own, ...inner];
}

/** Of several forms, the one for lists, or the one for objects. */
function formOf(schema: unknown, isList: boolean): unknown {
  if (!(schema instanceof z.ZodUnion)) return schema;
  return schema.options.find((option) => unwrapped(option) instanceof z.ZodArray === isList);
}

function problemsOf(issue: z.core.$ZodIssue, schema: z.ZodType): Problem[] {
  if (issue.code === 'invalid_union') {
    // Of several forms, what is wrong with the one that was meant.
    const meant = issue.errors.findIndex((branch) => branch.every(({ path }) => path.length > 0));
    const union = unwrapped(issue.path.reduce(inside, schema));
    const option = union instanceof z.ZodUnion ? (union.options[meant] as z.ZodType | undefined) : undefined;
    if (option !== undefined) {
      return issue.errors[meant]!.flatMap((inner) => problemsOf(inner, option)).map(({ path, message }) => ({
        path: [...issue.path, ...path],
        message,
      }));
    }
  }
  if (issue.code !== 'unrecognized_keys') return [{ path: issue.path, message: issue.message }];
  const known = shapeOf(issue.path.reduce(inside, schema));
  const keys = issue.keys.slice(0, MAX_PROBLEMS);
  return keys.map((key) => ({ path: [...issue.path, key], message: unknownKey(key, known) }));
}

function unknownKey(key: string, known: z.ZodRawShape): string {
  const meant = synonymFor(key, known) ?? similarTo(key, Object.keys(known)) ?? placeInside(key, known);
  return meant === undefined ? 'is not known here: remove it' : `is not known here: did you mean "${meant}"?`;
}

function synonymFor(key: string, known: z.ZodRawShape): string | undefined {
  const ours = Object.hasOwn(synonyms, key) ? synonyms[key] : synonymOf(key);
  return ours !== undefined && Object.hasOwn(known, ours) ? ours : undefined;
}

/** `command` belongs into `config`. */
function placeInside(key: string, known: z.ZodRawShape): string | undefined {
  const outer = Object.keys(known).find((name) => Object.hasOwn(shapeOf(known[name]), key));
  return outer === undefined ? undefined : `${outer}.${key}`;
}

function shapeOf(schema: unknown): z.ZodRawShape {
  const plain = unwrapped(schema);
  return plain instanceof z.ZodObject ? plain.shape : {};
}

function inside(schema: unknown, step: PropertyKey): unknown {
  const plain = unwrapped(schema);
  if (plain instanceof z.ZodUnion) return inside(formOf(plain, typeof step === 'number'), step);
  if (plain instanceof z.ZodRecord) return plain.valueType;
  return plain instanceof z.ZodArray ? plain.element : shapeOf(plain)[String(step)];
}

function unwrapped(schema: unknown): unknown {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodNullable
    ? unwrapped(schema.unwrap())
    : schema;
}

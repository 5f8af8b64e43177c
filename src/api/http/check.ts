import { z } from 'zod';
import { similarTo, synonymOf } from '../../config/keys.ts';
import { MAX_PROBLEMS, type Problem } from '../../config/problems.ts';
import { SwitchboardError } from '../../errors.ts';

/** In addition to the synonyms that files accept. */
const synonyms: Record<string, string> = {
  type: 'transport',
  disabled: 'enabled',
  replica_count: 'replicas',
};

/** Throws one error that lists all problems. */
export function check<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  const lost = lostNames(schema, value, []);
  if (parsed.success && lost.length === 0) return parsed.data;
  const issues = parsed.error?.issues.slice(0, MAX_PROBLEMS) ?? [];
  throw invalidInput([...lost, ...issues.flatMap((issue) => problemsOf(issue, schema))]);
}

/** zod silently drops `__proto__` from maps. */
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

/** The option of a union that matches a list or an object. */
function formOf(schema: unknown, isList: boolean): unknown {
  if (!(schema instanceof z.ZodUnion)) return schema;
  return schema.options.find((option) => unwrapped(option) instanceof z.ZodArray === isList);
}

function problemsOf(issue: z.core.$ZodIssue, schema: z.ZodType): Problem[] {
  if (issue.code === 'invalid_union') {
    // Reports only the problems of the option that was meant.
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

/** For example, `command` belongs in `config`. */
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

const MAX_KEY_LENGTH = 100;

export function invalidInput(problems: readonly Problem[]): SwitchboardError {
  const shown = problems
    .slice(0, MAX_PROBLEMS)
    .map(({ path, message }) => ({ path: describePath(path), message }));
  const sentences = shown.map(({ path, message }) => (path === '' ? message : `${path} ${message}`));
  const text = sentences.join('; ');
  const message = text.endsWith('?') ? text : `${text}.`;
  return new SwitchboardError('invalid_input', message, { data: { problems: shown } });
}

/** As in JavaScript: config.args[1]. */
function describePath(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      const key = String(step).slice(0, MAX_KEY_LENGTH);
      if (!/^[A-Za-z_$][\w$-]*$/.test(key)) return `[${JSON.stringify(key)}]`;
      return index === 0 ? key : `.${key}`;
    })
    .join('');
}

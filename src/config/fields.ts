import { z } from 'zod';

/** Fields of files and requests. Messages follow the field's name, and never show a value, which may be secret. */

export const MAX_TIMER_MS = 2 ** 31 - 1;

const controlCharacter = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;
/** The same as a pattern for JSON Schema. */
const controlCharacters = '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069';
/** Clients would resolve the dots as path segments. */
const reservedNames = ['__proto__', '.', '..'];

export function text(longest = Number.POSITIVE_INFINITY, shortest = 0) {
  // An empty text would fail later checks too: one problem is enough.
  const string = z.string({ error: (issue) => mustBe('a string', issue.input) }).min(shortest, {
    error: shortest === 1 ? 'must not be empty' : `must have at least ${shortest} characters`,
    abort: true,
  });
  const limited = Number.isFinite(longest)
    ? string.max(longest, { error: `must not be longer than ${longest} characters` })
    : string;
  return limited
    .refine((value) => !value.includes('\0'), 'must not contain a NUL character')
    .meta({ pattern: '^[^\\u0000]*$' });
}

export function integer(smallest: number, largest: number) {
  const error = `must be a whole number from ${smallest} to ${largest}`;
  return z.number({ error }).int({ error }).min(smallest, { error }).max(largest, { error });
}

export const timeout = integer(1, MAX_TIMER_MS);

export const flag = z.boolean({ error: (issue) => mustBe('true or false', issue.input) });

export function oneOf<const Choices extends readonly string[]>(choices: Choices) {
  const list = choices.map((choice) => JSON.stringify(choice)).join(', ');
  return z.enum(choices, { error: (issue) => missing(issue.input) ?? `must be one of ${list}` });
}

/** An object that rejects other keys. */
export function fields<Shape extends z.ZodRawShape>(shape: Shape, what = 'an object') {
  const known = Object.keys(shape).map((key) => JSON.stringify(key));
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'invalid_type'
        ? mustBe(what, issue.input)
        : `must have no other keys than ${known.join(', ')}`,
  });
}

/** An object that keeps other keys. */
export function openFields<Shape extends z.ZodRawShape>(shape: Shape, what = 'an object') {
  return z.looseObject(shape, { error: (issue) => mustBe(what, issue.input) });
}

/** An object with arbitrary keys. Only requests are limited in size. */
export function mapOf<Value extends z.ZodType>(
  name: RegExp,
  nameRule: string,
  value: Value,
  isLimited = true,
) {
  const key = isLimited ? z.string().max(1_024) : z.string();
  const map = z.record(
    key.regex(name).refine((text) => !text.includes('\0')),
    value,
    {
      error: (issue) =>
        issue.code === 'invalid_key' ? nameRule : mustBe('an object of names and values', issue.input),
    },
  );
  if (!isLimited) return map;
  return map
    .refine((entries) => Object.keys(entries).length <= 1_000, 'must not have more than 1000 names')
    .meta({ maxProperties: 1_000 });
}

export function listOf<Item extends z.ZodType>(what: string, item: Item, isLimited = true) {
  const list = z.array(item, { error: (issue) => mustBe(`a list of ${what}`, issue.input) });
  return isLimited ? list.max(1_000, { error: `must not have more than 1000 ${what}` }) : list;
}

/** Why a name is not allowed, or undefined. Names are part of tool names, URIs and paths. */
export function nameProblem(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if (name.length > 128) return 'must not be longer than 128 characters';
  if (name.includes('/')) return 'must not contain a slash';
  if (controlCharacter.test(name)) return 'must not contain a control character';
  if (!name.isWellFormed()) return 'must not contain half of a surrogate pair';
  return name === '__proto__' ? 'must not be "__proto__"' : undefined;
}

const pathName = text(128, 1)
  .refine((name) => !controlCharacter.test(name), 'must not contain a control character')
  .refine((name) => !reservedNames.includes(name), `must not be one of ${reservedNames.join(', ')}`);

export const productName = pathName.meta({
  pattern: `^[^${controlCharacters}]+$`,
  not: { enum: reservedNames },
});

const serverNamePattern = `^[^/${controlCharacters}]+$`;

/** The name of a server or group, which is also part of tool names and URIs. */
export const serverName = pathName
  .refine((name) => !name.includes('/'), 'must not contain a slash')
  .meta({ pattern: serverNamePattern, not: { enum: reservedNames } });

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** JSON Schema patterns have no flags. */
const uuidPattern = uuid.source.replaceAll('a-f', 'a-fA-F');
const noId = 'must not look like an id';

/** Paths of hosted servers accept an id or a name. */
export const hostedName = serverName
  .refine((name) => !uuid.test(name), noId)
  .meta({ pattern: serverNamePattern, not: { anyOf: [{ enum: reservedNames }, { pattern: uuidPattern }] } });

export const projectName = text(64, 1)
  .regex(/^[A-Za-z0-9._-]*$/, 'must be letters, digits, dots, underscores and hyphens')
  .refine((name) => name !== '.' && name !== '..', 'must not be "." or ".."')
  .refine((name) => !uuid.test(name), noId)
  .meta({ pattern: '^[A-Za-z0-9._-]+$', not: { pattern: `^\\.{1,2}$|${uuidPattern}` } });

/** The name in a `${NAME}` reference. */
export const secretName = text(128, 1)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be letters, digits and underscores, and not start with a digit')
  .meta({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' });

export function mustBe(what: string, value: unknown): string {
  const advice =
    what === 'a string' && ['boolean', 'number'].includes(typeof value) ? ': put it in quotes' : '';
  return missing(value) ?? `must be ${what}, not ${kindOf(value)}${advice}`;
}

function missing(value: unknown): string | undefined {
  return value === undefined ? 'is missing' : undefined;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

import { z } from 'zod';

/** The fields that requests are made of. Their messages follow the field's name, and never show a value: it may be secret. */

const maxTimerMs = 2 ** 31 - 1;

/** What a JSON Schema says of any text that we take. */
const withoutNul = '^[^\\u0000]*$';

const controlCharacter = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;
/** The same for readers of the schema. */
const controlCharacters = '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069';
/** Clients take the dots for steps of a path. */
const unspeakable = ['__proto__', '.', '..'];
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function text(longest: number, shortest = 0) {
  return z
    .string({ error: (issue) => mustBe('a string', issue.input) })
    .min(shortest, {
      error: shortest === 1 ? 'must not be empty' : `must have at least ${shortest} characters`,
    })
    .max(longest, { error: `must not be longer than ${longest} characters` })
    .refine((value) => !value.includes('\0'), 'must not have a NUL character in it')
    .meta({ pattern: withoutNul });
}

export function integer(smallest: number, largest: number) {
  const error = `must be a whole number from ${smallest} to ${largest}`;
  return z.number({ error }).int({ error }).min(smallest, { error }).max(largest, { error });
}

export function oneOf<const Choices extends readonly string[]>(choices: Choices) {
  const list = choices.map((choice) => JSON.stringify(choice)).join(', ');
  return z.enum(choices, { error: (issue) => missing(issue.input) ?? `must be one of ${list}` });
}

/** An object that takes these keys and no others. */
export function fields<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    // Unknown keys are told of one by one; the usual message would list them all, however many there are.
    error: (issue) => (issue.code === 'invalid_type' ? mustBe('an object', issue.input) : 'has unknown keys'),
  });
}

/** An object that has these keys among others, which are kept. */
export function openFields<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.looseObject(shape, { error: (issue) => mustBe('an object', issue.input) });
}

export function mapOf<Value extends z.ZodType>(name: RegExp, nameAdvice: string, value: Value) {
  return z
    .record(z.string().max(1_024).regex(name), value, {
      error: (issue) =>
        issue.code === 'invalid_key' ? nameAdvice : mustBe('an object of names and values', issue.input),
    })
    .refine((map) => Object.keys(map).length <= 1_000, 'must not have more than 1000 names in it')
    .meta({ maxProperties: 1_000 });
}

export function listOf<Item extends z.ZodType>(what: string, item: Item) {
  return z
    .array(item, { error: (issue) => mustBe(`a list of ${what}`, issue.input) })
    .max(1_000, { error: `must not have more than 1000 ${what} in it` });
}

export const flag = z.boolean({ error: (issue) => mustBe('true or false', issue.input) });

export const description = text(2_000).nullable().describe('null is none');

export const projectName = text(64, 1)
  .regex(/^[A-Za-z0-9._-]*$/, 'must be letters, digits, dots, underscores and hyphens')
  .refine((name) => name !== '.' && name !== '..', 'must not be "." or ".."')
  .refine((name) => !uuid.test(name), 'must not look like an id')
  .meta({
    pattern: '^[A-Za-z0-9._-]+$',
    not: { pattern: `^\\.{1,2}$|${uuid.source}`.replaceAll('a-f', 'a-fA-F') },
  });

/** A name that stands in paths of this API. */
const pathName = text(128, 1)
  .refine((name) => !controlCharacter.test(name), 'must not have a control character in it')
  .refine((name) => !unspeakable.includes(name), 'cannot be this one');

export const productName = pathName.meta({
  pattern: `^[^${controlCharacters}]+$`,
  not: { enum: unspeakable },
});

/** Of servers and groups: it stands in tool names and in URIs too. */
export const serverName = pathName
  .refine((name) => !name.includes('/'), 'must not have a slash in it')
  .meta({ pattern: `^[^/${controlCharacters}]+$`, not: { enum: unspeakable } });

/** What a configuration can refer to as ${NAME}. */
export const secretName = text(128, 1)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be letters, digits and underscores, and not start with a digit')
  .meta({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' });

/** Paths of hosted servers take an id or a name. */
export const hostedName = serverName
  .refine((name) => !uuid.test(name), 'must not look like an id')
  .meta({
    pattern: `^[^/${controlCharacters}]+$`,
    not: { anyOf: [{ enum: unspeakable }, { pattern: uuid.source.replaceAll('a-f', 'a-fA-F') }] },
  });

export const timeout = integer(1, maxTimerMs);
export const idleStop = integer(0, maxTimerMs).describe('0 is never');

/** Says what a value must be, and what it is instead. */
function mustBe(what: string, value: unknown): string {
  return missing(value) ?? `must be ${what}, not ${kindOf(value)}`;
}

function missing(value: unknown): string | undefined {
  return value === undefined ? 'is missing' : undefined;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

import { z } from 'zod';
import { isObject } from '../json.ts';
import { eras, isolations, startups } from './choices.ts';
import type { ServerEntry } from './entry.ts';
import {
  fields,
  flag,
  integer,
  listOf,
  MAX_TIMER_MS,
  mapOf,
  mustBe,
  oneOf,
  serverName,
  text,
  timeout,
} from './fields.ts';
import { isHttpUrl } from './variables.ts';

/** Only requests are limited in size. */
export function reachFields(isLimited: boolean) {
  const limit = (length: number) => (isLimited ? length : Number.POSITIVE_INFINITY);
  const longText = text(limit(128 * 1024));
  return {
    command: text(limit(4_096), 1)
      .refine((value) => value.trim() !== '', 'must not be empty')
      .optional(),
    args: listOf('strings', longText, isLimited).optional(),
    env: mapOf(/^[^=]+$/, 'cannot be the name of a variable', longText, isLimited).optional(),
    cwd: text(limit(4_096), 1).optional(),
    url: text(limit(16 * 1024), 1)
      .refine(
        (value) => value.includes('${') || isHttpUrl(value),
        'must be a URL that starts with http:// or https://',
      )
      .optional(),
    headers: mapOf(
      /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/,
      'cannot be the name of a header',
      longText
        .refine((value) => !/[\r\n]/.test(value), 'must not contain a line break')
        .meta({ pattern: '^[^\\u0000\\r\\n]*$' }),
      isLimited,
    ).optional(),
  };
}

/** Missing settings use the defaults of all servers. */
export function settingFields(isLimited: boolean) {
  const limit = (length: number) => (isLimited ? length : Number.POSITIVE_INFINITY);
  const patterns = listOf('patterns', text(limit(1_024), isLimited ? 1 : 0), isLimited).optional();
  return {
    group: isLimited ? serverName : text(),
    replicas: integer(1, 64),
    labels: mapOf(
      /^[A-Za-z0-9][A-Za-z0-9_./-]*$/,
      'cannot be the name of a label: use letters, digits and . _ / -, and start with a letter or a digit',
      // Clients select labels in a header, where commas separate them.
      text(limit(1_024))
        .regex(/^[^\s,]([^,]*[^\s,])?$/, 'must not be empty, contain commas, or start or end with a space')
        .meta({ pattern: '^[^\\s,\\u0000]([^,\\u0000]*[^\\s,\\u0000])?$' }),
      isLimited,
    ),
    concurrency: integer(1, 100_000),
    isolation: oneOf(isolations),
    era: oneOf(eras),
    timeoutMs: timeout,
    maxTimeoutMs: timeout,
    idleStopMs: integer(0, MAX_TIMER_MS).describe('0 means never'),
    startup: oneOf(startups),
    prefix: text(64, 1)
      .regex(/^[A-Za-z0-9_-]*$/, 'must be 1 to 64 letters, digits, underscores or hyphens')
      .meta({ pattern: '^[A-Za-z0-9_-]+$' }),
    tools: fields({ allow: patterns, deny: patterns }, 'an object such as {"deny": ["delete_*"]}').describe(
      'The tools to offer, by their names on the server; * matches any text. Offers tools that match `allow` (default: all) and not `deny`',
    ),
  };
}

const { args, env, headers, ...reach } = reachFields(false);
const { labels, tools, ...settings } = z.object(settingFields(false)).partial().shape;

/** The keys of a server in any program's file. */
export const serverSchema = z.object(
  {
    type: oneOf(['stdio', 'http', 'streamable-http', 'streamableHttp', 'sse']).optional(),
    ...reach,
    args: eachValue(numberAsText, args).optional(),
    // VS Code uses null to leave a variable out.
    env: z.preprocess(withoutNulls, eachValue(numberAsText, env)).optional(),
    headers: eachValue(numberAsText, headers).optional(),
    enabled: flag.optional(),
    disabled: flag.optional(),
    ...settings,
    labels: eachValue(
      (value) => (typeof value === 'boolean' ? String(value) : numberAsText(value)),
      labels,
    ).optional(),
    // Other programs have a list of allowed tools.
    tools: z.preprocess((value) => (Array.isArray(value) ? { allow: value } : value), tools).optional(),
  } satisfies Record<keyof ServerEntry, z.ZodType>,
  { error: (issue) => mustBe('an object with "command" or "url"', issue.input) },
);

function eachValue<Schema extends z.ZodType>(convert: (value: unknown) => unknown, schema: Schema) {
  return z.preprocess((values) => {
    if (Array.isArray(values)) return values.map(convert);
    if (!isObject(values)) return values;
    return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, convert(value)]));
  }, schema);
}

function numberAsText(value: unknown): unknown {
  return typeof value === 'number' ? String(value) : value;
}

function withoutNulls(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== null));
}

import { z } from 'zod';
import type { ServerEntry } from './entry.ts';
import { isHttpUrl } from './variables.ts';

const maxTimerMs = 2 ** 31 - 1;

const text = z
  .string({ error: (issue) => `must be a string, not ${kindOf(issue.input)}${quotesAdvice(issue.input)}` })
  .refine((value) => !value.includes('\0'), 'must not have a NUL character in it');

/** Numbers are common where a program only takes text, and mean only one thing. */
const textOrNumber = z.preprocess((value) => (typeof value === 'number' ? String(value) : value), text);

/** Labels are compared as text, whatever they are written as. */
const labelValue = z.preprocess(
  (value) => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value),
  // What a header cannot say, nobody could ask for there.
  text.regex(/^[^\s,]([^,]*[^\s,])?$/, 'must not be empty, nor have commas in it or spaces around it'),
);

const startup = oneOf(['lazy', 'sequential', 'parallel']);
const concurrency = integer(1, 100_000);
const timeout = integer(1, maxTimerMs);
/** 0 is never. */
const idleStop = integer(0, maxTimerMs);

const flag = z.boolean({ error: (issue) => `must be true or false, not ${kindOf(issue.input)}` });

const patterns = z
  .array(text, { error: (issue) => `must be a list of names and patterns, not ${kindOf(issue.input)}` })
  .optional();

/** Other programs write a list of those that they allow. */
const toolChoice = z.preprocess(
  (value) => (Array.isArray(value) ? { allow: value } : value),
  z.strictObject(
    { allow: patterns, deny: patterns },
    {
      error: (issue) =>
        issue.code === 'unrecognized_keys'
          ? 'must have no other keys than "allow" and "deny"'
          : `must be an object such as {"deny": ["delete_*"]}, not ${kindOf(issue.input)}`,
    },
  ),
);

/** The keys of one server that we know, whichever program's file it is in. */
export const serverSchema = z.object(
  {
    type: oneOf(['stdio', 'http', 'streamable-http', 'streamableHttp', 'sse']).optional(),
    command: text.refine((value) => value.trim() !== '', 'must not be empty').optional(),
    args: z
      .array(textOrNumber, { error: (issue) => `must be a list of strings, not ${kindOf(issue.input)}` })
      .optional(),
    env: z
      .preprocess(withoutNulls, mapOf(/^[^=\0]+$/, 'is not a name that a variable can have', textOrNumber))
      .optional(),
    cwd: text.refine((value) => value !== '', 'must not be empty').optional(),
    url: text
      .refine(
        (value) => value.includes('${') || isHttpUrl(value),
        'must be a URL that starts with http:// or https://',
      )
      .optional(),
    headers: mapOf(
      /^[!#$%&'*+.^_`|~\w-]+$/,
      'is not a name that a header can have',
      textOrNumber.refine((value) => !/[\r\n]/.test(value), 'must not have a line break in it'),
    ).optional(),
    prefix: text
      .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, underscores or hyphens')
      .optional(),
    enabled: flag.optional(),
    disabled: flag.optional(),
    startup: startup.optional(),
    isolation: oneOf(['shared', 'session']).optional(),
    era: oneOf(['auto', 'legacy', 'modern']).optional(),
    group: text.optional(),
    replicas: integer(1, 64).optional(),
    labels: mapOf(
      /^[A-Za-z0-9][\w./-]*$/,
      'is not a name that a label can have: take letters and digits, and . _ / - behind the first one',
      labelValue,
    ).optional(),
    concurrency: concurrency.optional(),
    timeoutMs: timeout.optional(),
    maxTimeoutMs: timeout.optional(),
    idleStopMs: idleStop.optional(),
    tools: toolChoice.optional(),
  } satisfies Record<keyof ServerEntry, z.ZodType>,
  { error: (issue) => `must be an object with "command" or "url", not ${kindOf(issue.input)}` },
);

/** What runs hosted servers, and how they are looked after. */
const hostingSchema = z.strictObject(
  {
    engine: text
      .regex(/^(\/|unix:\/\/\/|tcp:\/\/)/, 'must be the path of a socket, or start with unix:// or tcp://')
      .optional(),
    runtimes: z.strictObject({ gvisor: text.default('runsc'), firecracker: text.optional() }).prefault({}),
    allow: z
      .array(oneOf(['docker', 'process']), {
        error: (issue) => `must be a list of "docker" and "process", not ${kindOf(issue.input)}`,
      })
      .default([]),
    volumeImages: flag.default(true),
    callTimeoutMs: timeout.default(30_000),
    heartbeatMs: integer(100, maxTimerMs).default(30_000),
    heartbeatTimeoutMs: integer(1, maxTimerMs).default(10_000),
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? undefined
        : `must be an object of settings, not ${kindOf(issue.input)}`,
  },
);

/** How chats reach a model. The address is not for those who chat: the API key of a project is sent there. */
const chatSchema = z.strictObject(
  {
    baseUrl: text.regex(/^https?:\/\/[^/]/, 'must start with http:// or https://').optional(),
    model: text.min(1, 'must not be empty').default('claude-sonnet-5-5'),
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? undefined
        : `must be an object of settings, not ${kindOf(issue.input)}`,
  },
);

/** The top-level `switchboard` object. */
export const settingsSchema = z.object(
  {
    naming: oneOf(['on-conflict', 'always', 'last-wins']).default('on-conflict'),
    names: oneOf(['model-safe', 'as-is']).default('model-safe'),
    separator: text
      .regex(/^[A-Za-z0-9_-]{1,8}$/, 'must be 1 to 8 letters, digits, underscores or hyphens')
      .default('__'),
    discoveryWaitMs: integer(0, maxTimerMs).default(3_000),
    pageSize: integer(0, 1_000_000).default(0),
    connectTimeoutMs: integer(1, maxTimerMs).default(60_000),
    maxMessageBytes: integer(1_024, 2 ** 30).default(64 * 2 ** 20),
    maxReplayBytes: integer(0, 2 ** 40).default(64 * 2 ** 20),
    replayMs: integer(0, maxTimerMs).default(60_000),
    localAccess: oneOf(['user', 'everyone']).default('user'),
    inheritNetwork: z.boolean().default(true),
    allowedOrigins: z
      .array(text.refine(isOrigin, 'must be an origin as browsers write it, such as http://localhost:6274'), {
        error: (issue) => `must be a list of origins, not ${kindOf(issue.input)}`,
      })
      .default([]),
    maxListItems: integer(1, 1_000_000).default(20_000),
    maxListBytes: integer(1_024, 2 ** 30).default(16 * 2 ** 20),
    maxCatalogItems: integer(1, 1_000_000).default(25_000),
    maxInstructionsBytes: integer(0, 1024 * 1024).default(8 * 1024),
    maxConnections: integer(1, 1_000_000).default(10_000),
    slowClientMs: integer(10, maxTimerMs).default(30_000),
    maxSessions: integer(1, 1_000_000).default(10_000),
    sessionIdleMs: integer(1, maxTimerMs).default(30 * 60_000),
    maxHeldCalls: integer(0, 1_000_000).default(1_000),
    inputWaitMs: integer(1, maxTimerMs).default(5 * 60_000),
    keepAliveMs: integer(10, maxTimerMs).default(5_000),
    shutdownGraceMs: integer(0, maxTimerMs).default(10_000),
    startup: startup.default('lazy'),
    onStartFailure: oneOf(['continue', 'abort']).default('continue'),
    concurrency: concurrency.default(32),
    queueLimit: integer(1, 1_000_000).default(1_000),
    timeoutMs: timeout.optional(),
    maxTimeoutMs: timeout.optional(),
    idleStopMs: idleStop.default(0),
    backoffFirstMs: integer(1, maxTimerMs).default(1_000),
    backoffMaxMs: integer(1, maxTimerMs).optional(),
    breakerFailures: integer(1, 1_000).default(3),
    breakerOpenMs: integer(1, maxTimerMs).default(60_000),
    ejectAfter: integer(0, 1_000_000).default(5),
    ejectMs: integer(1, maxTimerMs).default(30_000),
    hosting: hostingSchema.prefault({}),
    chat: chatSchema.prefault({}),
  },
  { error: (issue) => `must be an object of settings, not ${kindOf(issue.input)}` },
);

export type { ServerEntry };

/** Scheme, host, and the port where it is not the usual one: no path, no pattern. */
function isOrigin(value: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#@*\s]+$/.test(value)) return false;
  const url = URL.parse(value);
  return url !== null && (url.origin === value || (url.origin === 'null' && url.protocol !== 'file:'));
}

function oneOf<const Choices extends readonly string[]>(choices: Choices) {
  const list = choices.map((choice) => JSON.stringify(choice)).join(', ');
  return z.enum(choices, { error: `must be one of ${list}` });
}

function integer(smallest: number, largest: number) {
  const error = `must be a whole number from ${smallest} to ${largest}`;
  return z.number({ error }).int({ error }).min(smallest, { error }).max(largest, { error });
}

function mapOf(name: RegExp, nameAdvice: string, value: z.ZodType<string>) {
  return z.record(z.string().regex(name), value, {
    error: (issue) =>
      issue.code === 'invalid_key'
        ? nameAdvice
        : `must be an object of names and values, not ${kindOf(issue.input)}`,
  });
}

/** VS Code takes null for a variable that is to be left out. */
function withoutNulls(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== null));
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Says what a value is without showing it, because it may be secret. */
export function kindOf(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function quotesAdvice(value: unknown): string {
  return typeof value === 'boolean' || typeof value === 'number' ? ': put it in quotes' : '';
}

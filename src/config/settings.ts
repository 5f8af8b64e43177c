import { isIP } from 'node:net';
import { z } from 'zod';
import { isObject } from '../json.ts';
import { startups, toolNamings } from './choices.ts';
import { fields, flag, integer, listOf, MAX_TIMER_MS, mustBe, oneOf, text, timeout } from './fields.ts';
import { unknownKeys } from './keys.ts';
import { isLimit, limitProblems, type Problem, problemsOf } from './problems.ts';
import type { ServerConfig } from './types.ts';

const positiveMs = integer(1, MAX_TIMER_MS);
const anyMs = integer(0, MAX_TIMER_MS);
const count = integer(1, 1_000_000);
const countOrNone = integer(0, 1_000_000);

const hostingSchema = fields(
  {
    engine: text()
      .regex(/^(\/|unix:\/\/\/|tcp:\/\/)/, 'must be the path of a socket, or start with unix:// or tcp://')
      .optional(),
    /** The engine's names for runtimes with stronger isolation. */
    runtimes: fields({ gvisor: text().default('runsc'), firecracker: text().optional() }).prefault({}),
    /** Providers that may be chosen automatically if no better one is available. */
    allow: listOf('"docker" and "process"', oneOf(['docker', 'process']), false).default([]),
    /** Whether container volumes may be mounted disk images, which limits their size. */
    volumeImages: flag.default(true),
    callTimeoutMs: timeout.default(30_000),
    heartbeatMs: integer(100, MAX_TIMER_MS).default(30_000),
    heartbeatTimeoutMs: positiveMs.default(10_000),
  },
  'an object of settings',
);

/** Not configurable per chat, because the project's API key is sent to `baseUrl`. */
const chatSchema = fields(
  {
    baseUrl: text()
      .regex(/^https?:\/\/[^/]/, 'must start with http:// or https://')
      .optional(),
    model: text(undefined, 1).default('claude-sonnet-5-5'),
  },
  'an object of settings',
);

const settingsSchema = z.object(
  {
    naming: oneOf(['on-conflict', 'always', 'last-wins']).default('on-conflict'),
    /** Whether names of tools and prompts are adapted to the APIs of all models, in the project `default`. */
    names: oneOf(toolNamings).default('model-safe'),
    separator: text()
      .regex(/^[A-Za-z0-9_-]{1,8}$/, 'must be 1 to 8 letters, digits, underscores or hyphens')
      .default('__'),
    /** How long the first list waits for servers that have never connected. */
    discoveryWaitMs: anyMs.default(3_000),
    /** Items per page of a list; 0 disables paging. */
    pageSize: countOrNone.default(0),
    /** How long a server may take to start and complete its handshake. */
    connectTimeoutMs: positiveMs.default(60_000),
    maxMessageBytes: integer(1_024, 2 ** 30).default(64 * 2 ** 20),
    /** How many bytes of events are kept for clients that reconnect, and for how long after a stream ended. */
    maxReplayBytes: integer(0, 2 ** 40).default(64 * 2 ** 20),
    replayMs: anyMs.default(60_000),
    /** Which users of this machine may use MCP without a token. */
    localAccess: oneOf(['user', 'everyone']).default('user'),
    /** Whether every request needs a key. On by default if there is a public address. */
    auth: flag.optional(),
    /** The address that clients use. Switchboard listens beyond this machine only with one. */
    publicUrl: text()
      .refine(isBaseUrl, 'must be an address without a path, such as https://sb.example')
      .optional(),
    /** Files of a certificate and its key, in PEM. */
    tls: fields({ cert: text(undefined, 1), key: text(undefined, 1) }).optional(),
    /** Proxies in front of Switchboard, whose X-Forwarded-For and Forwarded headers are believed. */
    trustedProxies: listOf(
      'addresses',
      text().refine(isProxyRange, 'must be an address or a range, such as 127.0.0.1 or 10.0.0.0/8'),
      false,
    ).default([]),
    /** How long the audit log is kept. */
    auditDays: integer(1, 36_500).default(365),
    /** Whether server processes inherit proxy and certificate authority variables. */
    inheritNetwork: z.boolean().default(true),
    /** Other origins whose pages may call Switchboard. */
    allowedOrigins: listOf(
      'origins',
      text().refine(isOrigin, 'must be an origin as browsers write it, such as http://localhost:6274'),
      false,
    ).default([]),
    /** Limits of a single list of a server: tools, resources, templates or prompts. */
    maxListItems: count.default(20_000),
    maxListBytes: integer(1_024, 2 ** 30).default(16 * 2 ** 20),
    /** Limits of the lists of all servers combined. */
    maxCatalogItems: count.default(25_000),
    maxInstructionsBytes: integer(0, 1024 * 1024).default(8 * 1024),
    maxConnections: count.default(10_000),
    /** How long a client may make almost no progress while data is pending. */
    slowClientMs: integer(10, MAX_TIMER_MS).default(30_000),
    maxSessions: count.default(10_000),
    /** For each sender but the local user: its sessions, and its subscriptions. */
    maxSessionsPerPrincipal: count.default(1_000),
    sessionIdleMs: positiveMs.default(30 * 60_000),
    /** How many calls may wait for input from their clients, and for how long. */
    maxHeldCalls: countOrNone.default(1_000),
    inputWaitMs: positiveMs.default(5 * 60_000),
    /** How often a keep-alive is sent on a silent stream; a slower response becomes a stream. */
    keepAliveMs: integer(10, MAX_TIMER_MS).default(5_000),
    /** How long calls in flight may continue when Switchboard stops; 0 cancels them immediately. */
    shutdownGraceMs: anyMs.default(10_000),
    startup: oneOf(startups).default('lazy'),
    /** Whether Switchboard stops if a server fails that starts with it. */
    onStartFailure: oneOf(['continue', 'abort']).default('continue'),
    concurrency: integer(1, 100_000).default(32),
    /** How many calls may be queued per replica. */
    queueLimit: count.default(1_000),
    timeoutMs: timeout.optional(),
    maxTimeoutMs: timeout.optional(),
    idleStopMs: anyMs.default(0),
    /** The first and the longest delay before a lost server is retried. */
    backoffFirstMs: positiveMs.default(1_000),
    backoffMaxMs: positiveMs.optional(),
    /** How many consecutive failures open the breaker, and for how long. */
    breakerFailures: integer(1, 1_000).default(3),
    breakerOpenMs: positiveMs.default(60_000),
    /** How many consecutive failed calls eject a replica from its group, and for how long; 0 disables it. */
    ejectAfter: countOrNone.default(5),
    ejectMs: positiveMs.default(30_000),
    hosting: hostingSchema.prefault({}),
    chat: chatSchema.prefault({}),
  },
  { error: (issue) => mustBe('an object of settings', issue.input) },
);

export type ServerDefaults = Pick<
  ServerConfig,
  'startup' | 'concurrency' | 'timeoutMs' | 'maxTimeoutMs' | 'idleStopMs'
>;
export type Settings = Omit<z.infer<typeof settingsSchema>, keyof ServerDefaults | 'backoffMaxMs'> & {
  backoffMaxMs: number;
};
export type ChatSettings = Settings['chat'];
export type HostingSettings = Settings['hosting'];

interface ReadSettings {
  settings?: Settings;
  defaults?: ServerDefaults;
  timeoutMs: number | undefined;
  problems: Problem[];
}

const path = ['switchboard'];
const settingKeys = Object.keys(settingsSchema.shape);
const DEFAULT_TIMEOUT_MS = 300_000;
const DEFAULT_MAX_TIMEOUT_MS = 3_600_000;
const DEFAULT_BACKOFF_MAX_MS = 30_000;

export function isSetting(key: string): boolean {
  return settingKeys.includes(key);
}

export function readSettings(value: unknown): ReadSettings {
  const parsed = settingsSchema.safeParse(value ?? {});
  const { backoffFirstMs } = settingsSchema.parse({});
  const problems = [
    ...unknownProblems(value),
    ...(parsed.success ? [] : problemsOf(parsed.error, path)),
    ...limitProblems(path, value, ['timeoutMs', undefined], 'maxTimeoutMs'),
    ...limitProblems(path, value, ['backoffFirstMs', backoffFirstMs], 'backoffMaxMs'),
  ];
  if (!parsed.success || problems.length > 0) {
    const given = isObject(value) ? value.timeoutMs : undefined;
    return { timeoutMs: isLimit(given) ? given : undefined, problems };
  }
  const {
    startup,
    concurrency,
    timeoutMs: given,
    maxTimeoutMs,
    idleStopMs,
    backoffMaxMs,
    ...rest
  } = parsed.data;
  // If only one of the two limits is set, the default of the other adapts.
  const timeoutMs = given ?? Math.min(DEFAULT_TIMEOUT_MS, maxTimeoutMs ?? DEFAULT_TIMEOUT_MS);
  return {
    settings: {
      ...rest,
      backoffMaxMs: backoffMaxMs ?? Math.max(rest.backoffFirstMs, DEFAULT_BACKOFF_MAX_MS),
    },
    defaults: {
      startup,
      concurrency,
      timeoutMs,
      maxTimeoutMs: maxTimeoutMs ?? Math.max(timeoutMs, DEFAULT_MAX_TIMEOUT_MS),
      idleStopMs,
    },
    timeoutMs: given,
    problems,
  };
}

/** Unknown settings are errors, because ignoring one may change what clients see. */
function unknownProblems(settings: unknown): Problem[] {
  if (!isObject(settings)) return [];
  return unknownKeys(Object.keys(settings), settingKeys).map(({ key, meant }) => ({
    path: [...path, key],
    message: `there is no such setting: ${meant === undefined ? 'remove it' : `did you mean "${meant}"?`}`,
  }));
}

function isBaseUrl(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && [url.origin, `${url.origin}/`].includes(value);
}

function isProxyRange(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/** Scheme, host and non-default port, without a path or pattern. */
function isOrigin(value: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#@*\s]+$/.test(value)) return false;
  const url = URL.parse(value);
  return url !== null && (url.origin === value || (url.origin === 'null' && url.protocol !== 'file:'));
}

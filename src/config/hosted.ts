import { z } from 'zod';
import { providers, restartPolicies } from './choices.ts';
import { fields, flag, integer, listOf, mapOf, oneOf, text } from './fields.ts';
import { defaultLimits, describeLimits, type LimitsInput, parseLimits } from './limits.ts';
import type { Problem } from './problems.ts';

/** The rules for hosted servers, in requests and in the database. */

const longText = text(128 * 1024);

const component = '[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*';
const host = '[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?';
const tag = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}';
const imageReference = `^(?:${host}/)?${component}(?:/${component})*(?::${tag})?(?:@sha256:[0-9a-f]{64})?$`;
const image = text(512, 1)
  .regex(new RegExp(imageReference), 'must name an image, such as mcp/time or ghcr.io/acme/server:1.2')
  .meta({ pattern: imageReference });

/** Virtual file systems of the kernel. */
const reserved = /^\/(?:proc|sys|dev)(?:\/|$)/;
const volume = text(1_024, 1)
  .regex(/^(?:\/[^/\p{Cc}]+)+$/u, 'must be a path that starts with / and does not end with it')
  .refine((path) => !/\/\.\.?(?:\/|$)/.test(path), 'must not contain . or ..')
  .refine((path) => !reserved.test(path), 'is a folder that cannot be a volume: choose another')
  .meta({
    pattern: '^(/[^/\\u0000-\\u001f\\u007f-\\u009f]+)+$',
    not: { pattern: `/\\.\\.?(/|$)|${reserved.source}` },
  });
const volumes = listOf('paths', volume)
  .max(32, 'must not have more than 32 paths')
  .refine((paths) => new Set(paths).size === paths.length, 'must not contain a path twice')
  .meta({ uniqueItems: true });

export const portNumber = integer(1, 65_535);

const configFields = z.object({
  args: listOf('strings', longText),
  stdio_bridge: flag.describe('Whether the server uses MCP over stdin and stdout; true by default'),
  restart_policy: oneOf(restartPolicies).describe('always by default'),
  path: text(1_024, 1)
    .regex(
      /^\/(?:[^/\\\s?#][^\\\s?#]*)?$/,
      'must start with / and not with //, and must not contain spaces, \\, ? or #',
    )
    .meta({ pattern: '^/([^/\\\\\\s?#\\u0000][^\\\\\\s?#\\u0000]*)?$' })
    .describe('The path of the MCP endpoint on its port; /mcp by default'),
  network: flag.describe('Whether the server has network access; implied by a port'),
  volumes: volumes.describe('Paths in the instance that persist across restarts'),
  writable_root: flag.describe('Whether the server may write outside its volumes'),
  image: image.nullable(),
  command: text(4_096, 1)
    .refine((value) => value.trim() !== '', 'must not be empty')
    .nullable()
    .describe('Overrides the command of the image'),
  port: portNumber.nullable().describe('The port that the server listens on inside the instance'),
  host_port: portNumber.nullable(),
  provider: oneOf(providers).nullable().describe('null selects the most isolated provider that is available'),
});

/** The same fields, all optional. */
export const hostedFields = configFields.partial().shape;

const variableName = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
const nameRule = 'cannot be the name of a variable';
export const environment = mapOf(variableName, nameRule, longText).meta({ writeOnly: true });
export const environmentChanges = mapOf(variableName, nameRule, longText.nullable())
  .meta({ writeOnly: true })
  .describe('Variables that are not listed do not change; null removes a variable');

const amount = z
  .union([text(64, 1), z.number()], { error: 'must be a text such as "512M", or a number' })
  .nullable()
  .optional();
/** null selects the default. */
export const limitFields = fields({
  cpu: amount.describe('Cores: "0.5", 1, "500m"'),
  memory: amount.describe('"512M", "1G", or a number of bytes'),
  disk: amount.describe('"512M", "1G", or a number of bytes'),
  pids: z
    .number({ error: 'must be a whole number' })
    .meta({ type: 'integer', minimum: 8, maximum: 4_194_304 })
    .nullable()
    .optional()
    .describe('The maximum number of processes and threads'),
}).superRefine((given, context) => {
  const parsed = parseLimits(withoutNull(given));
  for (const { path, message } of 'problems' in parsed ? parsed.problems : []) {
    context.addIssue({ code: 'custom', path: [...path], message });
  }
});

export type HostedLimits = ReturnType<typeof describeLimits>;

/** Contains unresolved `${NAME}` references. */
export interface HostedConfig extends z.infer<typeof configFields> {
  environment: Record<string, string>;
}

export const hostedDefaults: HostedConfig = {
  image: null,
  command: null,
  args: [],
  stdio_bridge: true,
  restart_policy: 'always',
  environment: {},
  port: null,
  host_port: null,
  path: '/mcp',
  network: false,
  volumes: [],
  writable_root: false,
  provider: null,
};

/** Missing, null and invalid limits become the defaults. */
export function limitsOf(given: LimitsInput): HostedLimits {
  const parsed = parseLimits(withoutNull(given));
  return describeLimits('problems' in parsed ? defaultLimits : parsed.limits);
}

export function hostedProblems({ stdio_bridge, port, host_port, ...config }: HostedConfig): Problem[] {
  const problems = [...runProblems(config)];
  if (!stdio_bridge && port === null) {
    problems.push({
      path: ['port'],
      message: 'is missing: without a stdio_bridge the server is reached over it',
    });
  }
  if (config.provider === 'process' && host_port !== null && host_port !== port) {
    problems.push({ path: ['port'], message: 'has another host port: a process listens on its port itself' });
  }
  return problems;
}

function runProblems({
  image,
  command,
  provider,
}: Pick<HostedConfig, 'image' | 'command' | 'provider'>): Problem[] {
  if (provider === 'process') {
    if (command !== null) return [];
    return [{ path: ['command'], message: 'is missing: the provider "process" runs no images' }];
  }
  // Without a provider, the server may still run as a process if that is allowed.
  if (image !== null || (command !== null && provider === null)) return [];
  return [{ path: ['image'], message: 'is missing: only the provider "process" needs none' }];
}

/** Rows may hold anything. Invalid values become defaults and are reported; a server with problems must not run. */
export function readHosted(
  config: Readonly<Record<string, unknown>>,
  limits: Readonly<Record<string, unknown>>,
): { config: HostedConfig; limits: HostedLimits; problems: string[] } {
  const problems: string[] = [];
  const read = Object.entries({ ...hostedFields, environment: environment.optional() }).flatMap(
    ([key, field]) => {
      const { success, data, error } = field.safeParse(config[key]);
      if (!success) problems.push(`mcp_config.${key} ${error.issues[0]!.message}`);
      return success && data !== undefined ? [[key, data] as const] : [];
    },
  );
  const complete = { ...hostedDefaults, ...Object.fromEntries(read) };
  const parsed = parseLimits(limits);
  const wrongLimits = 'problems' in parsed ? parsed.problems : [];
  problems.push(
    ...wrongLimits.map(({ path, message }) => `resource_limits.${path.join('.')} ${message}`),
    ...hostedProblems(complete).map(({ path, message }) => `mcp_config.${path.join('.')} ${message}`),
  );
  return { config: complete, limits: limitsOf(limits), problems };
}

function withoutNull(given: object): object {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

import { z } from 'zod';
import { parseLimits } from '../config/limits.ts';
import { fields, flag, integer, listOf, mapOf, oneOf, text } from './fields.ts';
import { providerChoices, restartPolicies } from './hosted-views.ts';

/** The fields that hosted servers are described with. */

const longText = text(128 * 1024);

const component = '[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*';
const host = '[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?';
const tag = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}';
const imageReference = `^(?:${host}/)?${component}(?:/${component})*(?::${tag})?(?:@sha256:[0-9a-f]{64})?$`;
const image = text(512, 1)
  .regex(new RegExp(imageReference), 'must name an image, such as mcp/time or ghcr.io/acme/server:1.2')
  .meta({ pattern: imageReference });

/** Where the kernel shows itself. */
const reserved = /^\/(?:proc|sys|dev)(?:\/|$)/;
const volume = text(1_024, 1)
  .regex(/^(?:\/[^/\p{Cc}]+)+$/u, 'must be a path that starts with / and does not end with it')
  .refine((path) => !/\/\.\.?(?:\/|$)/.test(path), 'must have no . or .. in it')
  .refine((path) => !reserved.test(path), 'is a folder that cannot be a volume: take another')
  .meta({
    pattern: '^(/[^/\\u0000-\\u001f\\u007f-\\u009f]+)+$',
    not: { pattern: `/\\.\\.?(/|$)|${reserved.source}` },
  });
const volumes = listOf('paths', volume)
  .max(32, 'must not have more than 32 paths in it')
  .refine((paths) => new Set(paths).size === paths.length, 'must not have a path in it twice')
  .meta({ uniqueItems: true });

const always = {
  args: listOf('strings', longText),
  stdio_bridge: flag.describe('Whether it speaks MCP over its stdin and stdout; true where nothing is said'),
  restart_policy: oneOf(restartPolicies).describe('always where nothing is said'),
  path: text(1_024, 1)
    .regex(
      /^\/(?:[^/\\\s?#][^\\\s?#]*)?$/,
      'must start with / and not with //, and have no space, \\, ? or # in it',
    )
    .meta({ pattern: '^/([^/\\\\\\s?#\\u0000][^\\\\\\s?#\\u0000]*)?$' })
    .describe('Where it serves MCP on its port; /mcp where nothing is said'),
  network: flag.describe('Whether it may reach the network; a port brings one along'),
  volumes: volumes.describe('Paths inside whose contents are kept'),
  writable_root: flag.describe('Whether it may write to the rest of its file system'),
};
const portNumber = integer(1, 65_535);

/** null stands for nothing. */
const perhaps = {
  image: image.nullable(),
  command: text(4_096, 1)
    .refine((value) => value.trim() !== '', 'must not be empty')
    .nullable()
    .describe('In the place of what the image says'),
  port: portNumber.nullable().describe('The port inside on which it serves'),
  host_port: portNumber.nullable(),
  provider: oneOf(providerChoices).nullable().describe('null is the most isolated one that there is'),
};
/** As they are stored. */
export const configShape = z.object({ ...always, ...perhaps }).partial().shape;

const { host_port: _stored, ...requested } = configShape;
/** As they are asked for. */
export const requestShape = {
  ...requested,
  port: z
    .union([portNumber, fields({ container: portNumber, host: portNumber })], {
      error: 'must be a port, or {"container", "host"} with a port each',
    })
    .nullable()
    .optional()
    .describe('The port inside on which it serves; with `host`, where it is published on 127.0.0.1'),
};

/** One value in a request, two in all that is stored. */
export function portsOf(port: number | { container: number; host: number } | null): {
  port: number | null;
  host_port: number | null;
} {
  if (port === null || typeof port === 'number') return { port, host_port: null };
  return { port: port.container, host_port: port.host };
}

const variableName = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
const nameAdvice = 'is not a name that a variable can have';
export const environment = mapOf(variableName, nameAdvice, longText).meta({ writeOnly: true });
export const environmentChanges = mapOf(variableName, nameAdvice, longText.nullable())
  .meta({ writeOnly: true })
  .describe('Variables that are not named stay as they are; null removes one');

const amount = z
  .union([text(64, 1), z.number()], { error: 'must be a text such as "512M", or a number' })
  .nullable()
  .optional();
/** null is as usual. */
const limitShape = {
  cpu: amount.describe('Cores: "0.5", 1, "500m"'),
  memory: amount.describe('"512M", "1G"; a number is one of bytes'),
  disk: amount.describe('"512M", "1G"; a number is one of bytes'),
  pids: z
    .number({ error: 'must be a whole number' })
    .meta({ type: 'integer', minimum: 8, maximum: 4_194_304 })
    .nullable()
    .optional()
    .describe('Processes and threads'),
};
export const limits = fields(limitShape).superRefine((given, context) => {
  const parsed = parseLimits(withoutNull(given));
  for (const { path, message } of 'problems' in parsed ? parsed.problems : []) {
    context.addIssue({ code: 'custom', path: [...path], message });
  }
});

function withoutNull(given: object): object {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

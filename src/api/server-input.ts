import { z } from 'zod';
import { isHttpUrl } from '../config/variables.ts';
import { contradictions, misfits } from './contradictions.ts';
import { defined } from './defined.ts';
import {
  description,
  fields,
  flag,
  idleStop,
  integer,
  listOf,
  mapOf,
  oneOf,
  serverName,
  text,
  timeout,
} from './fields.ts';

/** Servers as requests describe them, and as the rest of the program is told of them. */

const longText = text(128 * 1024);

const transport = oneOf(['stdio', 'sse', 'http']);

/** How a server is reached. Which of these go together is for a check of the whole: that knows the transport. */
const reach = {
  command: text(4_096, 1)
    .refine((value) => value.trim() !== '', 'must not be empty')
    .optional(),
  args: listOf('strings', longText).optional(),
  env: mapOf(/^[^=]+$/, 'is not a name that a variable can have', longText).optional(),
  cwd: text(4_096, 1).optional(),
  url: text(16 * 1024, 1)
    .refine(
      (value) => value.includes('${') || isHttpUrl(value),
      'must be a URL that starts with http:// or https://',
    )
    .optional(),
  headers: mapOf(
    /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/,
    'is not a name that a header can have',
    longText
      .refine((value) => !/[\r\n]/.test(value), 'must not have a line break in it')
      .meta({ pattern: '^[^\\u0000\\r\\n]*$' }),
  ).optional(),
};
const config = fields(reach).meta({ oneOf: [{ required: ['command'] }, { required: ['url'] }] });

/** What is not said is as for every server. */
const settingShape = {
  group: serverName,
  replicas: integer(1, 64),
  labels: mapOf(
    /^[A-Za-z0-9][A-Za-z0-9_./-]*$/,
    'is not a name that a label can have: take letters and digits, and . _ / - behind the first one',
    text(1_024)
      .regex(/^[^\s,]([^,]*[^\s,])?$/, 'must not be empty, nor have commas in it or spaces around it')
      .meta({ pattern: '^[^\\s,\\u0000]([^,\\u0000]*[^\\s,\\u0000])?$' }),
  ),
  concurrency: integer(1, 100_000),
  isolation: oneOf(['shared', 'session']),
  era: oneOf(['auto', 'legacy', 'modern']),
  timeout_ms: timeout,
  max_timeout_ms: timeout,
  idle_stop_ms: idleStop,
  startup: oneOf(['lazy', 'sequential', 'parallel']),
  prefix: text(64, 1)
    .regex(/^[A-Za-z0-9_-]*$/, 'must be letters, digits, underscores and hyphens')
    .meta({ pattern: '^[A-Za-z0-9_-]+$' }),
  tools: fields({
    allow: listOf('patterns', text(1_024, 1)).optional(),
    deny: listOf('patterns', text(1_024, 1)).optional(),
  }).describe(
    "Which of its tools are offered, by the server's own names, with * for anything: those in `allow` (all where it is missing) that are not in `deny`",
  ),
};
const settings = z.object(settingShape).partial();
const settingChanges = z
  .object(
    Object.fromEntries(Object.entries(settingShape).map(([key, setting]) => [key, setting.nullable()])) as {
      [Key in keyof typeof settingShape]: z.ZodNullable<(typeof settingShape)[Key]>;
    },
  )
  .partial();

const about = { description: description.optional(), enabled: flag.optional() };

export const newServer = fields({ name: serverName, ...about, transport, config, ...settings.shape })
  .superRefine((server, context) => {
    const wrong = [...misfits(server.transport, server.config, ['config']), ...contradictions(server)];
    for (const { path, message } of wrong) context.addIssue({ code: 'custom', path: [...path], message });
  })
  .meta(eitherKind((key) => ({ config: { required: [key] } })));

export const serverChanges = fields({
  name: serverName.optional(),
  ...about,
  transport: transport.optional(),
  config: config.optional().describe('Takes the place of the whole one that was there'),
  ...settingChanges.shape,
}).describe('null removes a setting');

/** A server in the manifest of a product has everything in one object, or how it is reached in `config` as elsewhere. */
const productShape = { ...about, transport, ...reach, config: config.optional(), ...settings.shape };

export const productServer = fields({ name: serverName, ...productShape })
  .superRefine(checkProductServer)
  .meta(eitherProductKind());

/** The same where the name is the key that it stands under. */
export const keyedProductServer = fields({ name: serverName.optional(), ...productShape })
  .superRefine(checkProductServer)
  .meta(eitherProductKind());

interface ProductServerInput extends Record<string, unknown> {
  transport: string;
  config?: object | undefined;
}

function checkProductServer(server: ProductServerInput, context: z.core.$RefinementCtx): void {
  const { config, transport } = server;
  const twice = config === undefined ? [] : Object.keys(reach).filter((key) => key in server);
  const wrong = [
    ...twice.map((key) => ({ path: [key], message: 'stands beside "config": put it in there' })),
    ...(config === undefined ? misfits(transport, server, []) : misfits(transport, config, ['config'])),
    ...contradictions(server),
  ];
  for (const { path, message } of wrong) context.addIssue({ code: 'custom', path: [...path], message });
}

export type ServerSettings = z.infer<typeof settings>;

export interface NewServer {
  name: string;
  description: string | null;
  transport: 'stdio' | 'sse' | 'http';
  config: ServerConfig;
  settings: ServerSettings;
  enabled: boolean;
}

type ServerConfig =
  | {
      command: string;
      args?: string[] | undefined;
      env?: Record<string, string> | undefined;
      cwd?: string | undefined;
    }
  | { url: string; headers?: Record<string, string> | undefined };

/** What is not there stays as it is; a setting that is null is removed. */
export interface ServerChanges extends Partial<Omit<NewServer, 'settings'>> {
  settings: z.infer<typeof settingChanges>;
}

/** Sorts what stands side by side in a request. */
export function newServerOf(body: z.infer<typeof newServer>): NewServer {
  const { name, description = null, transport, config, enabled = true, ...settings } = body;
  return { name, description, transport, config: config as ServerConfig, settings, enabled };
}

/** With how it is reached beside the rest. */
export function flatProductServer({
  config,
  ...server
}: z.infer<typeof productServer>): Omit<z.infer<typeof productServer>, 'config'> {
  return { ...server, ...config };
}

export function productServerOf(body: ReturnType<typeof flatProductServer>): NewServer {
  const { command, args, env, cwd, url, headers, ...rest } = body;
  const config = defined(url === undefined ? { command, args, env, cwd } : { url, headers });
  return newServerOf({ ...rest, config });
}

export function serverChangesOf(body: z.infer<typeof serverChanges>): ServerChanges {
  const { name, description, transport, config, enabled, ...settings } = body;
  return {
    ...(defined({ name, description, transport, config, enabled }) as Partial<NewServer>),
    settings,
  };
}

/** The two kinds of servers, for readers of the schema. */
function eitherKind(needs: (key: string) => object): Record<string, unknown> {
  const kind = (transport: object, key: string) => ({ properties: { transport, ...needs(key) } });
  return { oneOf: [kind({ const: 'stdio' }, 'command'), kind({ enum: ['sse', 'http'] }, 'url')] };
}

/** The same in manifests, each in two forms. */
function eitherProductKind(): Record<string, unknown> {
  const flatKeys = Object.keys(reach).map((key) => ({ required: [key] }));
  const forms = (transport: object, key: string) => [
    { properties: { transport }, required: [key], not: { required: ['config'] } },
    {
      properties: { transport, config: { required: [key] } },
      required: ['config'],
      not: { anyOf: flatKeys },
    },
  ];
  return { oneOf: [...forms({ const: 'stdio' }, 'command'), ...forms({ enum: ['sse', 'http'] }, 'url')] };
}

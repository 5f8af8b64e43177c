import { z } from 'zod';
import { fields, flag, oneOf, serverName, text } from '../config/fields.ts';
import { reachFields, settingFields } from '../config/server-fields.ts';
import { serverProblems } from '../config/server-rules.ts';
import { noKey } from './access-names.ts';
import { defined } from './defined.ts';

const transport = oneOf(['stdio', 'sse', 'http']);
const reach = reachFields(true);
const config = fields(reach).meta({ oneOf: [{ required: ['command'] }, { required: ['url'] }] });

const { timeoutMs, maxTimeoutMs, idleStopMs, ...sameKeys } = settingFields(true);
const settingShape = {
  ...sameKeys,
  timeout_ms: timeoutMs,
  max_timeout_ms: maxTimeoutMs,
  idle_stop_ms: idleStopMs,
};
const settings = z.object(settingShape).partial();
const settingChanges = z
  .object(
    Object.fromEntries(Object.entries(settingShape).map(([key, setting]) => [key, setting.nullable()])) as {
      [Key in keyof typeof settingShape]: z.ZodNullable<(typeof settingShape)[Key]>;
    },
  )
  .partial();

export const description = text(2_000).nullable().describe('null means none');
const about = { description: description.optional(), enabled: flag.optional() };

const newName = serverName.refine(...noKey);

export const newServer = fields({ name: newName, ...about, transport, config, ...settings.shape })
  .superRefine((server, context) => {
    for (const { path, message } of serverProblems(server, server.config, ['config'])) {
      context.addIssue({ code: 'custom', path: [...path], message });
    }
  })
  .meta(eitherKind((key) => ({ config: { required: [key] } })));

export const serverChanges = fields({
  name: newName.optional(),
  ...about,
  transport: transport.optional(),
  config: config.optional().describe('Replaces the current configuration as a whole'),
  ...settingChanges.shape,
}).describe('null removes a setting');

/** A server in a manifest has its command or address at the top level, or in `config` as elsewhere. */
const productShape = { ...about, transport, ...reach, config: config.optional(), ...settings.shape };

export const productServer = fields({ name: serverName, ...productShape })
  .superRefine(checkProductServer)
  .meta(eitherProductKind());

/** For manifests whose servers are an object with names as keys. */
export const keyedProductServer = fields({ name: serverName.optional(), ...productShape })
  .superRefine(checkProductServer)
  .meta(eitherProductKind());

interface ProductServerInput extends Record<string, unknown> {
  transport: string;
  config?: object | undefined;
}

function checkProductServer(server: ProductServerInput, context: z.core.$RefinementCtx): void {
  const { config } = server;
  const twice = config === undefined ? [] : Object.keys(reach).filter((key) => key in server);
  const wrong = [
    ...twice.map((key) => ({ path: [key], message: 'belongs inside "config": move it there' })),
    ...serverProblems(server, config ?? server, config === undefined ? [] : ['config']),
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

/** Missing fields do not change; null removes a setting. */
export interface ServerChanges extends Partial<Omit<NewServer, 'settings'>> {
  settings: z.infer<typeof settingChanges>;
}

/** Separates the settings from the other fields. */
export function newServerOf(body: z.infer<typeof newServer>): NewServer {
  const { name, description = null, transport, config, enabled = true, ...settings } = body;
  return { name, description, transport, config: config as ServerConfig, settings, enabled };
}

/** Moves the contents of `config` to the top level. */
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

/** Documents that `transport` determines the required key. */
function eitherKind(needs: (key: string) => object): Record<string, unknown> {
  const kind = (transport: object, key: string) => ({ properties: { transport, ...needs(key) } });
  return { oneOf: [kind({ const: 'stdio' }, 'command'), kind({ enum: ['sse', 'http'] }, 'url')] };
}

/** For manifests, which allow two forms of each kind. */
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

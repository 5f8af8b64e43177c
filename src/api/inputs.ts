import { z } from 'zod';
import {
  fields,
  flag,
  integer,
  listOf,
  oneOf,
  openFields,
  productName,
  projectName,
  serverName,
  text,
} from '../config/fields.ts';
import { noKey } from './access-names.ts';
import {
  description,
  flatProductServer,
  keyedProductServer,
  type NewServer,
  productServer,
  productServerOf,
} from './server-input.ts';
import { moment, pageLimit } from './times.ts';

const projectSettings = {
  description: description.optional(),
  record_payloads: flag.optional().describe('Whether call records contain arguments and results'),
  retention_days: integer(1, 36_500)
    .nullable()
    .optional()
    .describe('How long call records are kept; null means forever'),
  names: oneOf(['model-safe', 'as-is'])
    .optional()
    .describe('Whether tool names fit the APIs of all models, or keep their dots and colons'),
};
const name = projectName.refine(...noKey);

export const newProject = fields({ name, ...projectSettings });
export const projectChanges = fields({ name: name.optional(), ...projectSettings });

export const toolSwitch = fields({ enabled: flag });

/** An empty value cannot be redacted from output, and is usually a mistake. */
export const secretValue = fields({ value: text(64 * 1024, 1).meta({ writeOnly: true }) });

const listedServers = listOf('servers', productServer).superRefine((servers, context) => {
  const names = servers.map(({ name }) => name);
  for (const [index, name] of names.entries()) {
    if (names.indexOf(name) === index) continue;
    const message = 'is a duplicate: each server needs its own name';
    context.addIssue({ code: 'custom', path: [index, 'name'], message });
  }
});

const keyedServers = z
  .record(serverName, keyedProductServer)
  .superRefine((servers, context) => {
    for (const [key, { name = key }] of Object.entries(servers)) {
      const message = `must be ${JSON.stringify(key)}, the key that the server stands under: remove it`;
      if (name !== key) context.addIssue({ code: 'custom', path: [key, 'name'], message });
    }
  })
  .refine((servers) => Object.keys(servers).length <= 1_000, 'must not have more than 1000 servers in it')
  .meta({ maxProperties: 1_000 });

const productServers = z.union([listedServers, keyedServers], {
  error: (issue) =>
    issue.input === undefined ? 'is missing' : 'must be a list of servers, or an object of servers by name',
});

/** Unknown keys are kept, because products have other parts. */
export const productManifest = openFields({
  name: productName,
  version: text(128, 1),
  description: description.optional(),
  mcp: openFields({ servers: productServers }),
});

export interface NewProduct {
  name: string;
  version: string;
  /** The manifest as it was sent, except that its servers are a list. */
  manifest: Record<string, unknown>;
  servers: NewServer[];
}

export function newProductOf(manifest: z.infer<typeof productManifest>): NewProduct {
  const { name, version, mcp } = manifest;
  const listed = Array.isArray(mcp.servers)
    ? mcp.servers
    : Object.entries(mcp.servers).map(([key, server]) => ({ ...server, name: key }));
  const servers = listed.map(flatProductServer);
  const whole = { ...manifest, mcp: { ...mcp, servers } };
  return { name, version, manifest: whole, servers: servers.map(productServerOf) };
}

/** Query values are strings. */
export const callQuery = fields({
  server: text(128, 1).optional(),
  tool: text(1_024, 1).optional(),
  status: oneOf(['ok', 'tool_error', 'error', 'timeout', 'cancelled']).optional(),
  principal: text(256, 1).optional().describe('Who made the calls: an id, or a unique name'),
  since: moment.optional(),
  until: moment.optional(),
  limit: pageLimit(500, 50),
  cursor: text(1_024, 1).optional(),
});

export interface CallFilter extends Omit<z.infer<typeof callQuery>, 'since' | 'until'> {
  since?: Date;
  until?: Date;
}

export function callFilterOf({ since, until, ...query }: z.infer<typeof callQuery>): CallFilter {
  return {
    ...query,
    ...(since === undefined ? {} : { since: new Date(since) }),
    ...(until === undefined ? {} : { until: new Date(until) }),
  };
}

export const importQuery = fields({
  replace: z
    .stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive', error: 'must be true or false' })
    .default(false)
    .describe('Whether to replace servers with the same names'),
});

/** Validated by the import, which supports several formats, some with comments. */
export const importedFile = z
  .looseObject({})
  .describe('A file with `mcpServers` or `servers`, or a server.json of the registry');

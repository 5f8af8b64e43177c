import { z } from 'zod';
import { fields, flag, hostedName, oneOf, text, timeout } from '../config/fields.ts';
import {
  environment,
  environmentChanges,
  type HostedConfig,
  type HostedLimits,
  hostedDefaults,
  hostedFields,
  hostedProblems,
  limitFields,
  limitsOf,
  portNumber,
} from '../config/hosted.ts';
import type { LimitsInput } from '../config/limits.ts';
import { noKey } from './access-names.ts';
import { defined } from './defined.ts';

const DEFAULT_PROJECT = 'default';

const { host_port: _stored, ...storedFields } = hostedFields;
const requestFields = {
  ...storedFields,
  port: z
    .union([portNumber, fields({ container: portNumber, host: portNumber })], {
      error: 'must be a port, or {"container", "host"} with a port each',
    })
    .nullable()
    .optional()
    .describe('The port inside the instance; `host` is the published port on 127.0.0.1'),
};

const newBody = fields({
  name: hostedName.refine(...noKey),
  project_id: text(128, 1).optional().describe('The id or name of the project; "default" by default'),
  enabled: flag.optional(),
  ...requestFields,
  environment: environment.optional(),
  resource_limits: limitFields.optional(),
});

export const newHosted = newBody.superRefine((body, context) => {
  for (const { path, message } of hostedProblems(newHostedOf(body).config)) {
    context.addIssue({ code: 'custom', path: [...path], message });
  }
});

const fixed = (why: string) => z.never({ error: `cannot be changed: ${why}` }).optional();

export const hostedChanges = fields({
  name: fixed('volumes are named after it. Register a server with the new name'),
  project_id: fixed('volumes belong to the project. Register the server there'),
  enabled: flag.optional(),
  ...requestFields,
  environment: environmentChanges.optional(),
  resource_limits: limitFields
    .optional()
    .describe('Limits that are not listed do not change; null restores the default'),
}).describe('Fields that are not sent do not change. The name is fixed: volumes are named after it');

export const hostedQuery = fields({ project: text(128, 1).optional().describe('A project id or name') });

export const removalQuery = fields({
  volumes: oneOf(['keep', 'delete']).default('keep').describe('Whether to delete its volumes too'),
  project: text(128, 1)
    .default(DEFAULT_PROJECT)
    .describe('The id or name of the project that has the volumes, if the server was already removed'),
});

export const logQuery = fields({
  follow: z
    .stringbool({ truthy: ['1', 'true'], falsy: ['0', 'false'], case: 'sensitive', error: 'must be 1 or 0' })
    .default(false)
    .describe('Whether to stream the lines, then new ones, as Server-Sent Events of type `line`'),
});

/** The server validates `params`. */
export const hostedCall = fields({
  method: text(1_024, 1).describe('An MCP method, such as tools/call'),
  params: z.looseObject({}, { error: 'must be an object' }).optional(),
  timeout_ms: timeout.optional(),
});

export interface HostedSettings {
  enabled: boolean;
  resource_limits: HostedLimits;
  config: HostedConfig;
}

export interface NewHosted extends HostedSettings {
  name: string;
  /** An id or a name. */
  project: string;
}

/** Missing fields do not change. */
export interface HostedChanges {
  enabled?: boolean;
  /** null restores the default. */
  resource_limits?: LimitsInput;
  config: Partial<Omit<HostedConfig, 'environment'>> & {
    /** null removes a variable. */
    environment?: Record<string, string | null>;
  };
}

export interface HostedCall {
  method: string;
  /** The original text. */
  paramsText: string | undefined;
  /** Undefined uses the default of hosted servers. */
  timeoutMs: number | undefined;
}

export function newHostedOf(body: z.infer<typeof newBody>): NewHosted {
  const { name, project_id: project = DEFAULT_PROJECT, enabled = true, resource_limits, ...rest } = body;
  const { port = null, ...config } = rest;
  return {
    ...{ name, project, enabled, resource_limits: limitsOf(resource_limits ?? {}) },
    config: { ...hostedDefaults, ...defined(config), ...portsOf(port) },
  };
}

export function hostedChangesOf(body: z.infer<typeof hostedChanges>): HostedChanges {
  const { enabled, resource_limits, port, name: _name, project_id: _project, ...config } = body;
  return {
    ...defined({ enabled, resource_limits }),
    config: { ...defined(config), ...(port === undefined ? {} : portsOf(port)) },
  };
}

/** One field in requests, two in the database. */
function portsOf(
  port: NonNullable<z.infer<typeof hostedChanges>['port']> | null,
): Pick<HostedConfig, 'port' | 'host_port'> {
  if (port === null || typeof port === 'number') return { port, host_port: null };
  return { port: port.container, host_port: port.host };
}

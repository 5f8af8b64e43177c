import { z } from 'zod';
import { defaultLimits, describeLimits, type LimitsInput, parseLimits } from '../config/limits.ts';
import { defined } from './defined.ts';
import { fields, flag, hostedName, oneOf, text, timeout } from './fields.ts';
import { environment, environmentChanges, limits, portsOf, requestShape } from './hosted-fields.ts';
import type { HostedView } from './hosted-views.ts';
import type { Problem } from './http/problems.ts';

/** Hosted servers as requests describe them, and as the rest of the program is told of them. */

const DEFAULT_PROJECT = 'default';

const newBody = fields({
  name: hostedName,
  project_id: text(128, 1).optional().describe('An id or a name; "default" where nothing is said'),
  enabled: flag.optional(),
  ...requestShape,
  environment: environment.optional(),
  resource_limits: limits.optional(),
});

export const newHosted = newBody.superRefine((body, context) => {
  for (const { path, message } of hostedProblems(newHostedOf(body).config)) {
    context.addIssue({ code: 'custom', path: [...path], message });
  }
});

/** Told apart from what nobody knows. */
const fixed = (why: string) => z.never({ error: `cannot be changed: ${why}` }).optional();

export const hostedChanges = fields({
  name: fixed('volumes are called by it. Register a server of the new name'),
  project_id: fixed('volumes belong to the project. Register the server there'),
  enabled: flag.optional(),
  ...requestShape,
  environment: environmentChanges.optional(),
  resource_limits: limits.optional().describe('What is not named stays as it is; null is as usual'),
}).describe('What is not sent stays as it is. So does the name: volumes are called by it');

/** Of a query, where everything is text. */
export const hostedQuery = fields({ project: text(128, 1).optional().describe('An id or a name') });

export const removalQuery = fields({
  volumes: oneOf(['keep', 'delete']).default('keep').describe('What becomes of what it has kept'),
  project: text(128, 1)
    .default(DEFAULT_PROJECT)
    .describe('An id or a name: whose volumes are deleted of a server that is gone already'),
});

export const logQuery = fields({
  follow: z
    .stringbool({ truthy: ['1', 'true'], falsy: ['0', 'false'], case: 'sensitive', error: 'must be 1 or 0' })
    .default(false)
    .describe('As Server-Sent Events, which go on with what comes: an event `line` for each'),
});

/** What is in `params` is for the server to judge. */
export const hostedCall = fields({
  method: text(1_024, 1).describe('Of MCP, such as tools/call'),
  params: z.looseObject({}, { error: 'must be an object' }).optional(),
  timeout_ms: timeout.optional(),
});

export type HostedLimits = HostedView['resource_limits'];

/** How it is run. `${NAME}` references are still in it. */
export interface HostedConfig
  extends Pick<HostedView, 'image' | 'command' | 'args' | 'stdio_bridge' | 'restart_policy'>,
    Pick<HostedView, 'port' | 'host_port' | 'path' | 'network' | 'volumes' | 'writable_root'> {
  environment: Record<string, string>;
  /** What is asked for. */
  provider: HostedView['requested_provider'];
}

/** All that can be changed of a hosted server. */
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

/** What is not there stays as it is. */
export interface HostedChanges {
  enabled?: boolean;
  /** null is as usual. */
  resource_limits?: LimitsInput;
  config: Partial<Omit<HostedConfig, 'environment'>> & {
    /** null removes a variable. */
    environment?: Record<string, string | null>;
  };
}

export interface HostedCall {
  method: string;
  /** As it was sent. */
  paramsText: string | undefined;
  /** Undefined: as long as calls of hosted servers may take. */
  timeoutMs: number | undefined;
}

export const usual: HostedConfig = {
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

/** Sorts what stands side by side in a request, and fills in what was not said. */
export function newHostedOf(body: z.infer<typeof newBody>): NewHosted {
  const { name, project_id: project = DEFAULT_PROJECT, enabled = true, resource_limits, ...more } = body;
  const { port = null, ...config } = more;
  return {
    ...{ name, project, enabled, resource_limits: limitsOf(resource_limits ?? {}) },
    config: { ...usual, ...defined(config), ...portsOf(port) },
  };
}

export function hostedChangesOf(body: z.infer<typeof hostedChanges>): HostedChanges {
  const { enabled, resource_limits, port, name: _name, project_id: _project, ...config } = body;
  return {
    ...defined({ enabled, resource_limits }),
    config: { ...defined(config), ...(port === undefined ? {} : portsOf(port)) },
  };
}

/** As they are stored and shown, with the usual ones for those that are missing or null. */
export function limitsOf(given: LimitsInput): HostedLimits {
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  const parsed = parseLimits(said);
  // Problems of what was sent have been told of by then.
  return describeLimits('problems' in parsed ? defaultLimits : parsed.limits);
}

/** Where the parts of a hosted server do not fit each other. */
export function hostedProblems({ stdio_bridge, port, host_port, ...config }: HostedConfig): Problem[] {
  const unreachable = !stdio_bridge && port === null;
  const message = 'is missing: without a stdio_bridge the server is reached over it';
  const isMapped = config.provider === 'process' && host_port !== null && host_port !== port;
  const unmapped = 'has another host port: a process listens on its port itself';
  return [
    ...whatToRun(config),
    ...(unreachable ? [{ path: ['port'], message }] : []),
    ...(isMapped ? [{ path: ['port'], message: unmapped }] : []),
  ];
}

function whatToRun({
  image,
  command,
  provider,
}: Pick<HostedConfig, 'image' | 'command' | 'provider'>): Problem[] {
  if (provider === 'process') {
    if (command !== null) return [];
    return [{ path: ['command'], message: 'is missing: the provider "process" runs no images' }];
  }
  // Without a provider it may still become a process, where that is allowed.
  if (image !== null || (command !== null && provider === null)) return [];
  return [{ path: ['image'], message: 'is missing: only the provider "process" does without one' }];
}

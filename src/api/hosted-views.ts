import { z } from 'zod';
import { providers, restartPolicies } from '../config/choices.ts';
import { movedSecrets } from './views.ts';

/** The values of environment variables are never shown. */

const time = z.iso.datetime();
const count = z.int().min(0);

const provider = z.enum(providers);

const hostedStatus = z.enum([
  'starting',
  'ready',
  'unresponsive',
  'restarting',
  'backing_off',
  'waiting',
  'stopped',
  'failed',
]);

const limits = z
  .object({
    cpu: z.string().describe('Cores'),
    memory: z.string(),
    disk: z.string(),
    pids: z.int().describe('The maximum number of processes and threads'),
  })
  .describe('Resource limits');

const lastCrash = z.object({
  at: time,
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  reason: z.string(),
});

const usage = z.object({
  cpu_percent: z.number().min(0).nullable().describe('The percentage of one core, since the last request'),
  memory_bytes: count,
  memory_limit_bytes: count,
  disk_bytes: count.nullable(),
});

export const hostedView = z.object({
  id: z.uuid(),
  project: z.string().describe("The project's name"),
  project_id: z.uuid(),
  name: z.string(),
  image: z.string().nullable(),
  command: z.string().nullable(),
  args: z.array(z.string()),
  stdio_bridge: z.boolean(),
  restart_policy: z.enum(restartPolicies),
  environment: z.array(z.string()).describe('Names only: values are never shown'),
  port: z.int().nullable().describe('The port in the instance'),
  host_port: z.int().nullable().describe('The port on 127.0.0.1; if null, see `url`'),
  path: z.string().describe('The path of the MCP endpoint on its port'),
  network: z.boolean(),
  volumes: z.array(z.string()),
  writable_root: z.boolean(),
  resource_limits: limits,
  provider: provider.nullable().describe('The provider that runs the server; null until it is known'),
  requested_provider: provider.nullable(),
  provider_workspace_id: z.string().nullable().describe('The id of the instance at the provider'),
  lifecycle: z.literal('persistent').describe('Always `persistent`: the server keeps running'),
  enabled: z.boolean(),
  status: hostedStatus,
  container_status: z
    .enum(['running', 'stopped', 'restarting'])
    .describe('A summary of the status: running, about to run, or neither'),
  error: z
    .string()
    .nullable()
    .describe('Why the server is not ready, or does not run with its current settings'),
  next_try: time.nullable(),
  uptime_seconds: z.number().min(0).nullable(),
  restart_count: count,
  last_crash: lastCrash.nullable(),
  health: z.enum(['ok', 'warning']),
  url: z.string().nullable().describe('The address of its published port'),
  usage: usage.nullable().describe('Only in the response for a single server'),
  volume_names: z
    .array(z.string())
    .nullable()
    .describe('The names of its volumes at the provider; only in the response for a single server'),
  tool_count: count.nullable(),
  hosted_here: z.boolean().describe('Whether the responding process is the one that hosts servers'),
  version: z.int().min(1).describe('Increases with every change; also the ETag'),
  created_at: time,
  updated_at: time,
  moved_secrets: movedSecrets,
});

export const hostedList = z.object({ servers: z.array(hostedView) });

export const hostedEvent = z
  .object({ time, server: hostedView })
  .describe('The status of a hosted server changed; `server` is the new one');

export const hostedLine = z.object({ at: time, line: z.string() });

export const hostedLog = z.object({ lines: z.array(hostedLine) });

export const hostedResult = z.object({ result: z.unknown().describe('As the server sent it') });

export type HostedView = z.infer<typeof hostedView>;
export type HostedEvent = z.infer<typeof hostedEvent>;
export type HostedLine = z.infer<typeof hostedLine>;

import { z } from 'zod';
import { providers, restartPolicies } from '../config/choices.ts';
import { movedSecrets } from './views.ts';

/** Hosted servers as the API shows them. Values of their environment are shown to nobody. */

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
    pids: z.int().describe('Processes and threads'),
  })
  .describe('What it may use');

const lastCrash = z.object({
  at: time,
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  reason: z.string(),
});

const usage = z.object({
  cpu_percent: z.number().min(0).nullable().describe('Of one core, since it was last asked for'),
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
  port: z.int().nullable().describe('The port inside'),
  host_port: z.int().nullable().describe('Where that is published on 127.0.0.1; null: `url` says where'),
  path: z.string().describe('Where it serves MCP on its port'),
  network: z.boolean(),
  volumes: z.array(z.string()),
  writable_root: z.boolean(),
  resource_limits: limits,
  provider: provider.nullable().describe('What runs it; null before that is known'),
  requested_provider: provider.nullable(),
  provider_workspace_id: z.string().nullable().describe('What the provider calls it'),
  lifecycle: z.literal('persistent').describe('It is kept running; there is no other kind'),
  enabled: z.boolean(),
  status: hostedStatus,
  container_status: z
    .enum(['running', 'stopped', 'restarting'])
    .describe('The status in three words: whether something runs, is to run soon, or neither'),
  error: z
    .string()
    .nullable()
    .describe('Why it is not ready; of one that is ready, why it does not run as it is written down'),
  next_try: time.nullable(),
  uptime_seconds: z.number().min(0).nullable(),
  restart_count: count,
  last_crash: lastCrash.nullable(),
  health: z.enum(['ok', 'warning']),
  url: z.string().nullable().describe('Where its port is published'),
  usage: usage.nullable().describe('Only where one server is asked for'),
  volume_names: z
    .array(z.string())
    .nullable()
    .describe('What the provider calls its volumes. Only where one server is asked for'),
  tool_count: count.nullable(),
  hosted_here: z.boolean().describe('Whether the process that answers is the one that hosts'),
  version: z.int().min(1).describe('Changes with every change; it is also the ETag'),
  created_at: time,
  updated_at: time,
  moved_secrets: movedSecrets,
});

export const hostedList = z.object({ servers: z.array(hostedView) });

export const hostedEvent = z
  .object({ time, server: hostedView })
  .describe('A hosted server fares otherwise than before; it is shown as it is now');

export const hostedLine = z.object({ at: time, line: z.string() });

export const hostedLog = z.object({ lines: z.array(hostedLine) });

export const hostedResult = z.object({ result: z.unknown().describe('As the server gave it') });

export type HostedView = z.infer<typeof hostedView>;
export type HostedEvent = z.infer<typeof hostedEvent>;
export type HostedLine = z.infer<typeof hostedLine>;

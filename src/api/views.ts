import { z } from 'zod';

/** These schemas type the responses and document them in OpenAPI. Responses are not validated at run time. */

const time = z.iso.datetime();
const id = z.uuid();
const version = z.int().min(1).describe('Increases with every change; also the ETag');
const names = z.array(z.string());
const count = z.int().min(0);

export const projectView = z.object({
  id,
  name: z.string(),
  description: z.string().nullable(),
  record_payloads: z.boolean().describe('Whether call records hold arguments and results'),
  retention_days: z.int().nullable().describe('How long call records are kept; null means forever'),
  names: z
    .enum(['model-safe', 'as-is'])
    .describe('Whether tool names fit the APIs of all models, or keep their dots and colons'),
  version,
  server_count: count,
  created_at: time,
  updated_at: time,
});

export const projectList = z.object({ projects: z.array(projectView) });

const serverState = z.enum([
  'idle',
  'starting',
  'ready',
  'degraded',
  'backing_off',
  'breaker_open',
  'failed',
  'stopped',
  'disabled',
]);

const forOperators = 'null for those who may not operate the project';

/** Shared by servers and replicas. */
const condition = {
  state: serverState,
  since: time.describe('When the state began'),
  error: z.string().nullable().describe(forOperators),
  next_try: time.nullable().describe('When the next attempt starts'),
};

const load = {
  in_flight: count,
  queued: count,
  longest_wait_ms: z.number().min(0).describe('The longest wait among the calls that are queued now'),
  restarts: count,
};

export const replicaView = z
  .object({ replica: z.int().min(1).describe('Counted from 1'), ...condition, ...load })
  .describe('One running copy of a server');

const stdioConfigView = z.object({
  command: z.string(),
  args: z.array(z.string()).optional(),
  env: z.record(z.string(), z.string()).optional(),
  cwd: z.string().optional(),
});

const remoteConfigView = z.object({
  url: z.string(),
  headers: z.record(z.string(), z.string()).optional(),
});

const hostedConfigView = z.object({ hosted: id.describe('The id of the hosted server') });

/** Only in the response to a change. */
export const movedSecrets = names
  .optional()
  .describe('Secrets created from credentials in the request, which were replaced with references');

export const serverView = z.object({
  id: id.nullable().describe('null for a server of the configuration file'),
  project: z.string().describe("The project's name"),
  source: z.enum(['file', 'api', 'product', 'hosted']).describe('Where the server is defined'),
  product_id: id.nullable(),
  product: z.string().nullable().describe("The product's name"),
  name: z.string(),
  description: z.string().nullable(),
  transport: z.enum(['stdio', 'sse', 'http', 'hosted']),
  config: z.union([stdioConfigView, remoteConfigView, hostedConfigView]).nullable().describe(forOperators),
  enabled: z.boolean(),
  group: z.string().nullable(),
  replica_count: z.int().min(1).describe('The number of replicas'),
  labels: z.record(z.string(), z.string()),
  concurrency: z.int(),
  isolation: z.enum(['shared', 'session']),
  era: z
    .enum(['auto', 'legacy', 'modern'])
    .describe('The protocol era of its connections; `auto` uses that of each client'),
  timeout_ms: z.int(),
  max_timeout_ms: z.int(),
  idle_stop_ms: z.int().describe('0 means never'),
  startup: z.enum(['lazy', 'sequential', 'parallel']),
  prefix: z.string().nullable(),
  tools: z
    .object({ allow: names.optional(), deny: names.optional() })
    .nullable()
    .describe(`The tools to offer; null means all. ${forOperators}`),
  ...condition,
  warning: z
    .string()
    .nullable()
    .describe('What was truncated or left out of its lists, instructions or serverInfo, and why'),
  tool_count: count.nullable(),
  resource_count: count.nullable(),
  prompt_count: count.nullable(),
  ...load,
  replicas: z.array(replicaView),
  version: version.nullable().describe('null for a server of the configuration file'),
  created_at: time.nullable(),
  updated_at: time.nullable(),
  moved_secrets: movedSecrets,
});

export const serverList = z.object({ servers: z.array(serverView) });

export const serverEvent = z
  .object({
    time,
    server: serverView,
    replica: z.int().min(1).nullable().describe('The replica that changed, if there are several'),
    from: serverState,
  })
  .describe('A server or one of its replicas changed its state; `server` is the new one');

export const serverTest = z.object({
  ok: z.boolean(),
  duration_ms: z.number().min(0),
  error: z.string().nullable(),
  tools: count.nullable(),
  resources: count.nullable(),
  prompts: count.nullable(),
  server_info: z
    .looseObject({ name: z.string().optional(), version: z.string().optional() })
    .nullable()
    .describe('As the server sent it'),
});

export const serverLog = z.object({ lines: z.array(z.string()) });

export const toolView = z.object({
  name: z.string().describe('The name that clients see'),
  qualified_name: z.string().describe('A name that works in every naming mode'),
  server: z.string(),
  group: z.string().nullable(),
  tool: z.string().describe("The server's own name for it"),
  title: z.string().nullable(),
  description: z.string().nullable(),
  enabled: z.boolean(),
  input_schema: z.unknown().describe('As the server sent it'),
});

export const toolList = z.object({ tools: z.array(toolView) });

export const secretView = z.object({
  name: z.string(),
  created_at: time,
  updated_at: time,
  used_by: names.describe('The servers that refer to it'),
});

export const secretList = z.object({ secrets: z.array(secretView) });

export const rotation = z.object({ rotated: count, key_id: z.string() });

export const productView = z.object({
  id,
  name: z.string(),
  version: z.string(),
  servers: names,
  created_at: time,
  updated_at: time,
});

export const productList = z.object({ products: z.array(productView) });

export const installation = z.object({
  product: productView,
  added: names,
  changed: names,
  removed: names,
  unchanged: names,
  moved_secrets: movedSecrets,
});

const callStatus = z.enum(['ok', 'tool_error', 'error', 'timeout', 'cancelled']);

export const callView = z.object({
  id,
  run_id: id.nullable(),
  message_id: id.nullable(),
  step: z.int().nullable(),
  principal: z
    .object({ id: z.string(), name: z.string() })
    .nullable()
    .describe('Who made the call; null if Switchboard itself did, or nobody knows'),
  client: z.string().nullable(),
  method: z.string(),
  server: z.string().nullable(),
  replica: z.int().nullable(),
  tool: z.string().nullable(),
  status: callStatus,
  duration_ms: z.number().min(0),
  input_bytes: count,
  output_bytes: count,
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  input: z.unknown().describe('null unless the project records payloads'),
  output: z.unknown().describe('null unless the project records payloads'),
  created_at: time,
});

export const callList = z.object({
  calls: z.array(callView),
  next_cursor: z.string().nullable().describe('For the next page; null on the last page'),
  dropped: count.describe('How many call records this process has lost'),
});

export const importResult = z.object({
  imported: names,
  notes: z.array(z.string()).describe('What was left out or changed, and what is left to do'),
});

const forAdministrators = 'null for those who may not administer all projects';

export const statusView = z.object({
  version: z.string(),
  config: z.string().nullable().describe(`The path of the configuration file; ${forAdministrators}`),
  public_url: z.string().nullable().describe('The address for clients, if it is set'),
  database: z.object({
    mode: z.enum(['embedded', 'server', 'none']),
    connected: z.boolean(),
    error: z.string().nullable().describe(forAdministrators),
  }),
  records: z.object({ queued: count, dropped: count }).nullable().describe(forAdministrators),
  audit: z
    .object({
      queued: count.describe('Denials that are not yet in the audit log'),
      merged: count.describe('Denials that are counted in the audit log without their details'),
    })
    .nullable()
    .describe(forAdministrators),
  sessions: count.nullable().describe(forAdministrators),
});

export const failure = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    details: z.record(z.string(), z.unknown()),
  }),
});

export type ProjectView = z.infer<typeof projectView>;
export type ServerState = z.infer<typeof serverState>;
export type ServerView = z.infer<typeof serverView>;
export type ServerEvent = z.infer<typeof serverEvent>;
export type ServerTest = z.infer<typeof serverTest>;
export type ToolView = z.infer<typeof toolView>;
export type SecretView = z.infer<typeof secretView>;
export type Rotation = z.infer<typeof rotation>;
export type ProductView = z.infer<typeof productView>;
export type Installation = z.infer<typeof installation>;
export type CallView = z.infer<typeof callView>;
export type CallList = z.infer<typeof callList>;
export type ImportResult = z.infer<typeof importResult>;
export type StatusView = z.infer<typeof statusView>;

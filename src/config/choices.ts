/** The allowed values of settings. Free of zod, so that the CLI loads fast. */

export const startups = ['lazy', 'sequential', 'parallel'] as const;
export const isolations = ['shared', 'session'] as const;
export const eras = ['auto', 'legacy', 'modern'] as const;
export const toolNamings = ['model-safe', 'as-is'] as const;

/** Most isolated first. */
export const providers = ['gvisor', 'firecracker', 'e2b', 'docker', 'process'] as const;
export type Provider = (typeof providers)[number];
export const restartPolicies = ['always', 'on-failure', 'never'] as const;
export type RestartPolicy = (typeof restartPolicies)[number];

/** The settings of a server: each key in files, and its name in requests and the database. */
export const settingKeys = {
  group: 'group',
  replicas: 'replicas',
  labels: 'labels',
  concurrency: 'concurrency',
  isolation: 'isolation',
  era: 'era',
  timeoutMs: 'timeout_ms',
  maxTimeoutMs: 'max_timeout_ms',
  idleStopMs: 'idle_stop_ms',
  startup: 'startup',
  prefix: 'prefix',
  tools: 'tools',
} as const;

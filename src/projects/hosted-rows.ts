import { type Provider, providers } from '../config/choices.ts';
import { readHosted } from '../config/hosted.ts';
import { parseLimits } from '../config/limits.ts';
import {
  fillKnown,
  type HostingSettings,
  resolveVariables,
  type ServerConfig,
  type ServerDefaults,
  variablesIn,
} from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { InstanceSpec } from '../hosting/driver.ts';
import type { RunHistory } from '../hosting/restart-policy.ts';
import type { HostedServer } from '../hosting/server-state.ts';
import type { WorkspaceRow } from '../store/workspaces.ts';
import type { Vault } from './vault.ts';

/** A row with all defaults applied. */
export interface HostedRow extends WorkspaceRow {
  /** Why the stored row cannot run. */
  problem: string | undefined;
}

export function hostedRowOf(row: WorkspaceRow): HostedRow {
  const { config, limits, problems } = readHosted({ ...row.mcp_config }, { ...row.resource_limits });
  const problem =
    problems.length === 0
      ? undefined
      : `The hosted server "${row.name}" has an invalid row in the database: ${problems.join('; ')}.`;
  return { ...row, mcp_config: config, resource_limits: limits, problem };
}

/** The gateway treats a hosted server like any other server of its project. */
export function configOfHosted(
  { id, name, enabled, mcp_config }: WorkspaceRow,
  project: string,
  callTimeoutMs: number,
  defaults: ServerDefaults,
): ServerConfig {
  return {
    name,
    transport: { type: 'hosted', id },
    enabled,
    startup: 'parallel',
    isolation: 'shared',
    era: 'auto',
    replicas: 1,
    labels: {},
    concurrency: mcp_config.stdio_bridge ? 1 : defaults.concurrency,
    timeoutMs: callTimeoutMs,
    maxTimeoutMs: Math.max(callTimeoutMs, defaults.maxTimeoutMs),
    idleStopMs: 0,
    project,
  };
}

export function hostedVariables({ mcp_config }: Pick<WorkspaceRow, 'mcp_config'>): Set<string> {
  const { environment, args, command } = mcp_config;
  return variablesIn([...Object.values(environment), ...args, command ?? '']);
}

interface Owner {
  readonly id: string;
  readonly name: string;
  readonly vault: Vault;
}

export function hostedServerOf(
  row: HostedRow,
  project: Owner,
  allow: HostingSettings['allow'],
): HostedServer {
  const { id, name, enabled, mcp_config, resource_limits, metadata } = row;
  const { provider, restart_policy, ...made } = mcp_config;
  const secrets = project.vault.versions(hostedVariables(row));
  return {
    ...{ id, name, project: project.id, enabled, provider: provider ?? formerProvider(row, allow) },
    former: provider === null ? { hasVolumes: made.volumes.length > 0 } : undefined,
    restartPolicy: restart_policy,
    revision: JSON.stringify([made, resource_limits, provider, secrets]),
    history: historyOf(metadata),
    spec: () => specOf(row, project),
  };
}

/** Prefers the provider that ran it before, if it is still allowed, because it has the volumes. */
function formerProvider({ provider }: WorkspaceRow, allow: HostingSettings['allow']): Provider | undefined {
  if (provider === 'docker' || provider === 'process') return allow.includes(provider) ? provider : undefined;
  return providers.find((known) => known === provider);
}

const noHistory: RunHistory = { restarts: 0, lastCrash: null, crashes: [], step: 0 };

export function historyOf({ memory }: WorkspaceRow['metadata']): RunHistory {
  const { crashes, ...kept } = { ...noHistory, ...(memory as Partial<RunHistory> | undefined) };
  return { ...kept, crashes: Array.isArray(crashes) ? crashes : [] };
}

function specOf({ id, name, mcp_config, resource_limits, problem }: HostedRow, project: Owner): InstanceSpec {
  if (problem !== undefined) throw new SwitchboardError('invalid_config', problem);
  const { image, command, args, environment, port, stdio_bridge } = mcp_config;
  // Other variables are left for a shell in the container to expand.
  const filled = (text: string) => fillKnown(text, (secret) => project.vault.value(secret));
  const parsed = parseLimits(resource_limits);
  if ('problems' in parsed) {
    const problems = parsed.problems.map(({ path, message }) => `${path.join('.')} ${message}`);
    throw new SwitchboardError(
      'invalid_config',
      `The limits of the server "${name}": ${problems.join('; ')}.`,
    );
  }
  return {
    ...{ id, name, project: project.id, image: image ?? undefined },
    command: command === null ? undefined : filled(command),
    args: args.map(filled),
    environment: resolved(name, environment, project),
    limits: parsed.limits,
    hasStdio: stdio_bridge,
    port: port ?? undefined,
    hostPort: mcp_config.host_port ?? undefined,
    hasNetwork: mcp_config.network || port !== null,
    volumes: mcp_config.volumes,
    hasWritableRoot: mcp_config.writable_root,
  };
}

/** Uses the project's secrets only, never the environment of Switchboard. */
function resolved(server: string, env: Record<string, string>, project: Owner): Record<string, string> {
  const transport = { type: 'stdio' as const, command: server, args: [], env, cwd: '/' };
  const filled = resolveVariables(transport, server, (name) => project.vault.value(name), project.name);
  return filled.type === 'stdio' ? filled.env : {};
}

import { parseLimits } from '../config/limits.ts';
import { resolveVariables, type ServerConfig, type ServerDefaults, variablesIn } from '../config.ts';
import type { InstanceSpec } from '../hosting/driver.ts';
import type { HostedServer, Memory } from '../hosting/supervisor.ts';
import type { WorkspaceRow } from '../store/types.ts';
import type { LiveProject } from './live-project.ts';

/** How the gateway sees a hosted server: as one more server of its project. */
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
    replicas: 1,
    labels: {},
    concurrency: mcp_config.stdio_bridge ? 1 : defaults.concurrency,
    timeoutMs: callTimeoutMs,
    maxTimeoutMs: Math.max(callTimeoutMs, defaults.maxTimeoutMs),
    idleStopMs: 0,
    project,
  };
}

/** What the supervisor has to know of a hosted server. */
export function hostedServerOf(row: WorkspaceRow, project: LiveProject): HostedServer {
  const { id, name, enabled, mcp_config, resource_limits, metadata } = row;
  const { provider, restart_policy, ...made } = mcp_config;
  const secrets = project.vault.versions(variablesIn(Object.values(made.environment)));
  return {
    // What once ran it runs it again: another one would not have its volumes, and might isolate it otherwise.
    ...{ id, name, project: project.id, enabled, provider: provider ?? row.provider ?? undefined },
    restartPolicy: restart_policy,
    revision: JSON.stringify([made, resource_limits, provider, secrets]),
    memory: memoryOf(metadata),
    spec: () => specOf(row, project),
  };
}

const nothing: Memory = { restarts: 0, lastCrash: null, crashes: [], step: 0 };

/** What is remembered is what was noted, as far as anybody can read it. */
export function memoryOf({ memory }: WorkspaceRow['metadata']): Memory {
  return { ...nothing, ...(memory as Partial<Memory> | undefined) };
}

function specOf({ id, name, mcp_config, resource_limits }: WorkspaceRow, project: LiveProject): InstanceSpec {
  const { image, command, args, environment, port, stdio_bridge } = mcp_config;
  const parsed = parseLimits(resource_limits);
  if ('problems' in parsed) throw new Error(parsed.problems.map(({ message }) => message).join('; '));
  return {
    ...{ id, name, project: project.id, image: image ?? undefined, command: command ?? undefined, args },
    environment: resolved(name, environment, project),
    limits: parsed.limits,
    hasStdio: stdio_bridge,
    port: port ?? undefined,
    hasNetwork: mcp_config.network || port !== null,
    volumes: mcp_config.volumes,
    hasWritableRoot: mcp_config.writable_root,
  };
}

/** With the project's secrets in it, and nothing of what Switchboard itself was started with. */
function resolved(server: string, env: Record<string, string>, project: LiveProject): Record<string, string> {
  const transport = { type: 'stdio' as const, command: server, args: [], env, cwd: '/' };
  const filled = resolveVariables(transport, server, (name) => project.vault.value(name), project.name);
  return filled.type === 'stdio' ? filled.env : {};
}

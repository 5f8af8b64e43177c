import { join } from 'node:path';
import type { Names } from '../catalog/names.ts';
import type { ServerEntry } from '../config/entry.ts';
import { describeProblem, invalidConfiguration } from '../config/problems.ts';
import { checkServer, checkStored } from '../config/server.ts';
import { nameProblemsOf } from '../config/server-names.ts';
import { readSettings } from '../config/settings.ts';
import type { ServerConfig, Settings } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { toRpcError } from '../protocol/jsonrpc.ts';
import { idBytes } from '../protocol/message.ts';
import { identity } from '../self-identity.ts';
import { requestGroup } from '../upstreams/group-request.ts';
import type { Server, ServerEvents } from '../upstreams/server.ts';
import { Servers } from '../upstreams/servers.ts';
import { limitsOf, type ReplicaSettings } from '../upstreams/settings.ts';
import { shareChildren } from './children.ts';
import { type LocalTools, localTools } from './local-tools.ts';
import {
  type AgentTool,
  type CallOptions,
  onceEach,
  outcomeOf,
  type Toolbox,
  type ToolOutcome,
} from './toolbox.ts';

export interface LocalToolboxOptions {
  /** The client name that servers see; `switchboard` by default. */
  name?: string | undefined;
  /** As in `mcpServers` of a configuration file. A server with a `url` may be a project of a Switchboard. */
  servers: Record<string, ServerEntry>;
  /** How long the circuit breaker stays open after several failed connects; a minute by default. */
  breakerOpenMs?: number | undefined;
  /** Whether tool names must fit the APIs of all models, which is the default. */
  names?: Names | undefined;
  /** Receives warnings for the user, such as hidden names and keys without effect. */
  onWarning?: ((message: string) => void) | undefined;
}

/** Tells a Switchboard which run a call belongs to. */
const RUN_META_KEY = 'dev.switchboard/run';

/** A project of a Switchboard as the only server. A short breaker, because a Switchboard that restarts is back soon. */
export function projectOf(url: string): Pick<LocalToolboxOptions, 'servers' | 'breakerOpenMs'> {
  return { servers: { switchboard: { type: 'http', url } }, breakerOpenMs: 1_000 };
}

interface Running {
  servers: Servers;
  release(): void;
}

/** The tools of MCP servers that run for this process only, and end with it. */
export class LocalToolbox implements Toolbox {
  private readonly name: string | undefined;
  private readonly names: Names;
  private readonly configs: readonly ServerConfig[];
  private readonly settings: Settings;
  private readonly warned: (message: string) => void;
  private readonly listeners = new Set<() => void>();
  /** Also set while servers start. */
  private running: Running | undefined;
  private starting: Promise<void> | undefined;
  private isReady = false;
  private stopping: Promise<void> | undefined;
  private offered: LocalTools | undefined;

  constructor({
    name,
    servers,
    breakerOpenMs,
    names = 'model-safe',
    onWarning = () => {},
  }: LocalToolboxOptions) {
    this.name = name;
    this.names = names;
    const { configs, settings } = readServers(servers, onWarning);
    this.configs = configs;
    this.settings = breakerOpenMs === undefined ? settings : { ...settings, breakerOpenMs };
    this.warned = onceEach(onWarning);
  }

  async start(): Promise<void> {
    if (this.stopping !== undefined) throw stopped();
    if (this.isReady) {
      this.reconnect();
      return;
    }
    this.starting ??= this.open().finally(() => {
      this.starting = undefined;
    });
    await this.starting;
  }

  tools(): readonly AgentTool[] {
    return [...this.current.byName.values()].map(({ tool }) => tool);
  }

  async call(
    { name }: AgentTool,
    args: Record<string, unknown>,
    { signal, run }: CallOptions,
  ): Promise<ToolOutcome> {
    signal?.throwIfAborted();
    if (this.stopping !== undefined) throw stopped();
    const found = this.current.byName.get(name);
    if (found === undefined) throw new SwitchboardError('unknown_tool', `Unknown tool: ${name}`);
    const { group, own, tool } = found;
    const meta = run === undefined ? {} : { _meta: { [RUN_META_KEY]: run } };
    const paramsText = JSON.stringify({ name: own, arguments: args, ...meta });
    const answer = await requestGroup(
      group,
      { name: tool.server },
      { method: 'tools/call', paramsText },
      signal,
    );
    if ('result' in answer) return outcomeOf(answer.result);
    const { code, message } = answer.error;
    throw new SwitchboardError(
      'server_error',
      `Server "${tool.server}" returned an error for the tool "${own}": ${message} (${code})`,
      { data: { server: tool.server, rpc: answer.error } },
    );
  }

  follow(listener: () => void): () => void {
    // A new function, so that the same listener can subscribe twice.
    const own = () => listener();
    this.listeners.add(own);
    return () => this.listeners.delete(own);
  }

  stop(): Promise<void> {
    this.stopping ??= this.close();
    return this.stopping;
  }

  private get current(): LocalTools {
    if (this.offered === undefined) {
      this.offered = localTools(this.running?.servers.groups() ?? [], this.names);
      for (const warning of this.offered.warnings) this.warned(warning);
    }
    return this.offered;
  }

  private async open(): Promise<void> {
    const { record, release } = await shareChildren((message) => this.warned(message));
    const servers = new Servers(replicaSettings(this.settings, record, this.name), this.events());
    this.running = { servers, release };
    try {
      if (this.stopping !== undefined) throw stopped();
      servers.apply(this.configs);
      for (const server of servers.all()) await startServer(server);
      if (this.stopping !== undefined) throw stopped();
      this.offered = undefined;
      this.isReady = true;
    } catch (error) {
      await this.end();
      throw error;
    }
  }

  private async close(): Promise<void> {
    this.isReady = false;
    await this.running?.servers.stop();
    await this.starting?.catch(() => {});
    await this.end();
  }

  private async end(): Promise<void> {
    const { running } = this;
    this.running = undefined;
    this.offered = undefined;
    await running?.servers.stop();
    running?.release();
  }

  /** Reconnects lost servers now instead of after their backoff. */
  private reconnect(): void {
    for (const server of this.running?.servers.all() ?? []) {
      if (server.condition.state === 'backing_off') server.retry();
    }
  }

  private events(): ServerEvents {
    return {
      ...{ connected() {}, disconnected() {}, notificationReceived() {}, logged() {}, callsFailed() {} },
      stateChanged: ({ name }, replica) => {
        // A lost server restarts, and lists its tools then.
        const why = replica.condition.state === 'degraded' ? replica.discovery.failureOf('tools') : undefined;
        if (this.isReady && why !== undefined) this.warned(`Server "${name}": ${why}`);
      },
      offerChanged: (server, kinds) => {
        if (!kinds.includes('tools')) return;
        if (server.warning !== undefined) this.warned(`Server "${server.name}": ${server.warning}`);
        this.offered = undefined;
        if (this.isReady) for (const listener of [...this.listeners]) listener();
      },
      requestReceived: ({ server, upstream, message }) => {
        const why = `Server "${server.name}" sent the request ${message.method}, which an agent does not support.`;
        upstream.respondError(idBytes(message), toRpcError(new SwitchboardError('client_unavailable', why)));
      },
    };
  }
}

/** Rejects if it does not connect or cannot list its tools, because an agent without them would fail in confusing ways. */
async function startServer(server: Server): Promise<void> {
  const { name } = server;
  await server.discover();
  for (const replica of server.replicas) {
    const { reason, state } = replica.condition;
    if (state !== 'ready' && state !== 'degraded') {
      throw startFailure(name, reason?.message ?? `Server "${name}" is ${state}.`, reason);
    }
    const why = replica.discovery.failureOf('tools');
    if (why !== undefined) throw startFailure(name, `Server "${name}" cannot be used: ${why}`, reason);
  }
}

function startFailure(server: string, what: string, cause: unknown): SwitchboardError {
  return new SwitchboardError('server_start_failed', what, { cause, data: { server } });
}

function stopped(): SwitchboardError {
  return new SwitchboardError('server_unavailable', 'The servers were stopped.');
}

function replicaSettings(
  settings: Settings,
  children: ReplicaSettings['children'],
  name: string | undefined,
): ReplicaSettings {
  const us = identity();
  return {
    identity: name === undefined ? us : { ...us, name },
    instance: undefined,
    project: { id: 'agent', name: 'agent' },
    ...limitsOf(settings),
    variable: (name) => process.env[name],
    given: () => {},
    redact: (text) => text,
    children,
    // Never called: the configuration of a toolbox cannot have hosted servers.
    hosts: {
      attach: () => Promise.reject(new SwitchboardError('no_database', 'Hosted servers need a database.')),
    },
  };
}

function readServers(
  servers: Readonly<Record<string, ServerEntry>>,
  warned: (message: string) => void,
): { configs: ServerConfig[]; settings: Settings } {
  const { settings, defaults } = readSettings({});
  // Relative paths start at the working directory.
  const file = join(process.cwd(), 'servers');
  const configs = Object.entries(servers).map(([name, entry]) => {
    for (const warning of checkServer(name, entry, []).warnings)
      warned(`Server "${name}": ${describeProblem(warning)}`);
    const config = checkStored(name, entry, defaults!, file);
    // There is one client, and it needs all tools before it begins.
    return { ...config, startup: 'sequential' as const, isolation: 'shared' as const };
  });
  const problems = nameProblemsOf(new Map(Object.entries(servers)), []);
  if (problems.length > 0) throw invalidConfiguration('the servers', problems);
  return { configs, settings: settings! };
}

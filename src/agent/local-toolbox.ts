import type { Names } from '../catalog/names.ts';
import type { ServerEntry } from '../config/entry.ts';
import type { ServerConfig, Settings } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { identity } from '../identity.ts';
import { toRpcError } from '../protocol/jsonrpc.ts';
import { idBytes } from '../protocol/message.ts';
import { requestGroup } from '../upstreams/group-request.ts';
import type { Server, ServerEvents } from '../upstreams/server.ts';
import { Servers } from '../upstreams/servers.ts';
import { limitsOf, type ReplicaSettings } from '../upstreams/settings.ts';
import { shareChildren } from './children.ts';
import { localServers } from './local-servers.ts';
import { type LocalTools, localTools } from './local-tools.ts';
import { outcomeOf } from './mcp-tools.ts';
import { onceEach } from './once-each.ts';
import type { AgentTool, CallOptions, Toolbox, ToolOutcome } from './toolbox.ts';

export interface LocalToolboxOptions {
  /** What servers are told who calls them; `switchboard` where nothing is said. */
  name?: string | undefined;
  /** As in `mcpServers` of a configuration file. One with a `url` may be a project of a Switchboard. */
  servers: Record<string, ServerEntry>;
  /** For how long a server is left alone that could not be reached several times; a minute where nothing is said. */
  breakerOpenMs?: number | undefined;
  /** Whether names of tools have to fit the APIs of all models, as they do where nothing is said. */
  names?: Names | undefined;
  /** Told of what a user should know: names that hide others, keys that have no effect. */
  onWarning?: ((message: string) => void) | undefined;
}

/** Under this key a Switchboard is told which run a call belongs to. */
const RUN_META_KEY = 'dev.switchboard/run';

/** A project of a Switchboard as the only server. It is a program that is restarted now and then, and back soon. */
export function projectOf(url: string): Pick<LocalToolboxOptions, 'servers' | 'breakerOpenMs'> {
  return { servers: { switchboard: { type: 'http', url } }, breakerOpenMs: 1_000 };
}

/** Servers that were started, and what has to be given back when they have stopped. */
interface Running {
  servers: Servers;
  release(): void;
}

/** The tools of MCP servers that run for this process alone, and end with it. */
export class LocalToolbox implements Toolbox {
  private readonly name: string | undefined;
  private readonly names: Names;
  private readonly configs: readonly ServerConfig[];
  private readonly settings: Settings;
  private readonly warned: (message: string) => void;
  private readonly listeners = new Set<() => void>();
  /** There also while they start. */
  private running: Running | undefined;
  private starting: Promise<void> | undefined;
  private isReady = false;
  private stopping: Promise<void> | undefined;
  /** What is offered now; made when somebody asks. */
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
    const { configs, settings } = localServers(servers, onWarning);
    this.configs = configs;
    this.settings = breakerOpenMs === undefined ? settings : { ...settings, breakerOpenMs };
    this.warned = onceEach(onWarning);
  }

  async start(): Promise<void> {
    if (this.stopping !== undefined) throw stopped();
    if (this.isReady) {
      this.hasten();
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
      `Server "${tool.server}" answered the call of "${own}" with an error: ${message} (${code})`,
      { data: { server: tool.server, rpc: answer.error } },
    );
  }

  follow(listener: () => void): () => void {
    // The same function may be given twice.
    const told = () => listener();
    this.listeners.add(told);
    return () => this.listeners.delete(told);
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

  /** Somebody wants to begin: a server that was lost is not kept waiting for its next try. */
  private hasten(): void {
    for (const server of this.running?.servers.all() ?? []) {
      if (server.condition.state === 'backing_off') server.retry();
    }
  }

  private events(): ServerEvents {
    return {
      ...{ connected() {}, disconnected() {}, notificationReceived() {}, logged() {}, callsFailed() {} },
      stateChanged: ({ name }, replica) => {
        // One that is lost is started again, and says then what it has.
        const why = replica.condition.state === 'degraded' ? replica.unlisted('tools') : undefined;
        if (this.isReady && why !== undefined) this.warned(`Server "${name}": ${why}`);
      },
      offerChanged: (server, kinds) => {
        if (!kinds.includes('tools')) return;
        if (server.warning !== undefined) this.warned(`Server "${server.name}": ${server.warning}`);
        this.offered = undefined;
        if (this.isReady) for (const told of [...this.listeners]) told();
      },
      requestReceived: ({ server, upstream, message }) => {
        const why = `Server "${server.name}" asked ${message.method}, and there is nobody here who could answer.`;
        upstream.answerError(idBytes(message), toRpcError(new SwitchboardError('client_unavailable', why)));
      },
    };
  }
}

/** Fails where it is not there, or cannot say which tools it has: an agent that lacks some would fail in stranger ways. */
async function startServer(server: Server): Promise<void> {
  const { name } = server;
  await server.discover();
  for (const replica of server.replicas) {
    const { reason, state } = replica.condition;
    if (state !== 'ready' && state !== 'degraded') {
      throw startFailure(name, reason?.message ?? `Server "${name}" is ${state}.`, reason);
    }
    const why = replica.unlisted('tools');
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
    // The configuration of a toolbox cannot name one.
    hosts: {
      attach: () => Promise.reject(new SwitchboardError('no_database', 'Hosted servers need a database.')),
    },
  };
}

import { createApi } from './api/api.ts';
import type { ServerEvent, ServerState, ServerView } from './api/servers.ts';
import { type Configuration, loadConfiguration, type Settings, watchConfiguration } from './config.ts';
import { SwitchboardError } from './errors.ts';
import { Gateway } from './gateway/gateway.ts';
import { HttpFront } from './gateway/http/server.ts';
import { Scope } from './gateway/scope.ts';
import { identity } from './identity.ts';
import { offerKinds } from './upstreams/discovery.ts';
import type { Server } from './upstreams/server.ts';
import { Servers } from './upstreams/servers.ts';

export type { ServerEvent, ServerView };

export interface AppOptions {
  configPath: string;
  host: string;
  port: number;
  /** Overrides how every server starts. */
  startup?: 'lazy' | 'parallel';
  /** Stops by itself when no client has been there for this long. */
  exitWhenIdleMs?: number;
}

/** What happens, for whoever shows it to the user. */
export interface AppEvents {
  /** Clients are served from now on. */
  listening(url: string): void;
  /** `from` is the state of now where only what the server offers has changed. */
  serverChanged(event: ServerEvent): void;
  configApplied(started: string[], stopped: string[]): void;
  warned(message: string): void;
  idle(): void;
}

export interface App {
  /** The base address, without a path. */
  url: string;
  servers(): ServerView[];
  stop(): Promise<void>;
}

const loopbackHosts = new Set(['127.0.0.1', '::1', 'localhost']);

/** Puts the parts together and runs them until stop(). */
export async function startApp(options: AppOptions, events: AppEvents): Promise<App> {
  if (!loopbackHosts.has(options.host)) {
    throw new SwitchboardError(
      'invalid_config',
      `Listening on ${options.host} would open every server to the network without authentication. Use 127.0.0.1.`,
    );
  }
  let early: Configuration | SwitchboardError | undefined;
  let reload = (result: Configuration | SwitchboardError): void => {
    early = result;
  };
  const watch = watchConfiguration(options.configPath, (result) => reload(result), events.warned);
  try {
    const configuration = withOverrides(await loadConfiguration(options.configPath, events.warned), options);
    const { settings } = configuration;
    const self = identity();
    const watchers = new Set<(event: ServerEvent) => void>();
    const lastStates = new WeakMap<Server, ServerState>();

    const servers = new Servers(
      {
        identity: self,
        connectTimeoutMs: settings.connectTimeoutMs,
        maxMessageBytes: settings.maxMessageBytes,
        variable: (name) => process.env[name],
      },
      {
        stateChanged: (server) => {
          const event = eventOf(server, lastStates.get(server) ?? 'idle');
          lastStates.set(server, server.state);
          events.serverChanged(event);
          for (const tell of watchers) tell(event);
        },
        offerChanged: (server, kinds) => {
          if (server.state === 'ready') events.serverChanged(eventOf(server, server.state));
          scope.changes(kinds);
        },
        connected: (server, connection) => gateway.connected(server, connection),
        disconnected: (upstream) => gateway.disconnected(upstream),
        notified: (server, word) => gateway.notified(server, word),
        asked: (server, word) => gateway.asked(server, word),
      },
    );
    const scope = new Scope(servers, scopeSettings(settings), (lists, warnings) => {
      gateway.announce(lists);
      for (const warning of warnings) events.warned(warning);
    });
    const gateway = new Gateway(scope, { identity: self, ...settings });
    const api = createApi({
      servers: () => servers.all().map(view),
      log: (name) => servers.get(name)?.log.lines,
      subscribe(listener) {
        watchers.add(listener);
        return () => watchers.delete(listener);
      },
    });
    const front = new HttpFront(gateway, api.handle, {
      ...options,
      maxMessageBytes: settings.maxMessageBytes,
    });

    const port = await front.listen();
    const host = options.host.includes(':') ? `[${options.host}]` : options.host;
    const url = `http://${host}:${port}`;
    events.listening(url);
    servers.apply(configuration.servers);
    reload = (result) => {
      if (result instanceof SwitchboardError) {
        events.warned(`${result.message}\nThe configuration stays as it was.`);
        return;
      }
      const next = withOverrides(result, options);
      scope.configure(scopeSettings(next.settings));
      const { started, stopped } = servers.apply(next.servers);
      scope.changes(offerKinds);
      events.configApplied(started.map(nameOf), stopped.map(nameOf));
    };
    if (early !== undefined) reload(early);
    const idleness = watchIdleness(gateway, options.exitWhenIdleMs, events);

    return {
      url,
      servers: () => servers.all().map(view),
      async stop() {
        clearInterval(idleness);
        watch.close();
        scope.close();
        gateway.close();
        api.close();
        await Promise.all([front.close(), servers.stop()]);
      },
    };
  } catch (error) {
    watch.close();
    throw error;
  }
}

function watchIdleness(
  gateway: Gateway,
  exitWhenIdleMs: number | undefined,
  events: AppEvents,
): NodeJS.Timeout | undefined {
  if (exitWhenIdleMs === undefined) return undefined;
  let idleSince = Date.now();
  const timer = setInterval(
    () => {
      if (gateway.sessionCount > 0) idleSince = Date.now();
      else if (Date.now() - idleSince >= exitWhenIdleMs) events.idle();
    },
    Math.min(1_000, exitWhenIdleMs),
  );
  timer.unref();
  return timer;
}

function withOverrides(configuration: Configuration, { startup }: AppOptions): Configuration {
  if (startup === undefined) return configuration;
  return { ...configuration, servers: configuration.servers.map((server) => ({ ...server, startup })) };
}

function scopeSettings({ naming, separator, pageSize, discoveryWaitMs }: Settings) {
  return { mode: naming, separator, pageSize, discoveryWaitMs };
}

function nameOf({ name }: Server): string {
  return name;
}

function eventOf(server: Server, from: ServerState): ServerEvent {
  return { time: new Date().toISOString(), server: view(server), replica: null, from };
}

function view({ config, state, since, error, offer }: Server): ServerView {
  const condition = {
    state,
    since: since.toISOString(),
    error: state === 'failed' || state === 'ready' ? (error?.message ?? null) : null,
    next_try: null,
    in_flight: 0,
    queued: 0,
    longest_wait_ms: 0,
    restarts: 0,
  };
  return {
    name: config.name,
    transport: config.transport.type,
    group: null,
    labels: {},
    ...condition,
    tool_count: offer?.tools.length ?? null,
    resource_count: offer?.resources.length ?? null,
    prompt_count: offer?.prompts.length ?? null,
    replicas: [{ replica: 1, ...condition }],
  };
}

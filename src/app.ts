import { join } from 'node:path';
import { createApi } from './api/api.ts';
import type { ServerEvent, ServerView } from './api/servers.ts';
import { eventOf, unchangedEvent, viewOf } from './app/server-views.ts';
import { endLeftovers } from './channels/leftovers.ts';
import { ProcessRecord } from './channels/process-record.ts';
import {
  type Configuration,
  loadConfiguration,
  type ServerConfig,
  type Settings,
  watchConfiguration,
} from './config.ts';
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
  /** The folder of this user's Switchboards; several may run in it. */
  home: string;
  /** Overrides how every server starts. */
  startup?: ServerConfig['startup'];
  /** Overrides what happens when a server fails that starts with Switchboard. */
  onStartFailure?: Settings['onStartFailure'];
  /** Stops by itself when no client has been there for this long. */
  exitWhenIdleMs?: number;
  /** Ends a start that is under way. */
  signal?: AbortSignal;
  /** Ends every process that was started, at once, also during the start. For when there is no time to stop. */
  killSignal?: AbortSignal;
}

/** What happens, for whoever shows it to the user. */
export interface AppEvents {
  /** Clients are served from now on. */
  listening(url: string): void;
  /** `from` is the state of now where only what the server offers has changed. */
  serverChanged(event: ServerEvent): void;
  configApplied(started: string[], changed: string[], stopped: string[]): void;
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
  const runFolder = join(options.home, 'run');
  await endLeftovers(runFolder, events.warned);
  const record = ProcessRecord.open(runFolder, events.warned);
  options.killSignal?.addEventListener('abort', () => record.killAll());
  const watch = watchConfiguration(options.configPath, (result) => reload(result), events.warned);
  try {
    const configuration = withOverrides(await loadConfiguration(options.configPath, events.warned), options);
    const { settings } = configuration;
    let idleness: NodeJS.Timeout | undefined;
    const self = identity();
    const watchers = new Set<(event: ServerEvent) => void>();

    const servers = new Servers(
      {
        identity: self,
        connectTimeoutMs: settings.connectTimeoutMs,
        maxMessageBytes: settings.maxMessageBytes,
        queueLimit: settings.queueLimit,
        recovery: {
          backoff: { firstMs: settings.backoffFirstMs, maxMs: settings.backoffMaxMs },
          breakerFailures: settings.breakerFailures,
          breakerOpenMs: settings.breakerOpenMs,
        },
        ejectAfter: settings.ejectAfter,
        ejectMs: settings.ejectMs,
        variable: (name) => process.env[name],
        children: record,
      },
      {
        stateChanged: (server, replica, from) => {
          const event = eventOf(server, replica, from);
          events.serverChanged(event);
          for (const tell of watchers) tell(event);
        },
        offerChanged: (server, kinds) => {
          if (server.condition.state === 'ready') events.serverChanged(unchangedEvent(server));
          scope.changes(kinds);
        },
        connected: (...connected) => gateway.connected(...connected),
        disconnected: (...gone) => gateway.disconnected(...gone),
        notified: (...said) => gateway.notified(...said),
        asked: (server, _replica, word) => gateway.asked(server, word),
      },
    );
    const scope = new Scope(servers, scopeSettings(settings), (lists, warnings) => {
      gateway.announce(lists);
      for (const warning of warnings) events.warned(warning);
    });
    const gateway = new Gateway(scope, { identity: self, ...settings });
    const api = createApi({
      servers: () => servers.all().map(viewOf),
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

    const { started } = servers.apply(configuration.servers);
    const port = await startAndListen().catch(async (error: unknown) => {
      await stop();
      throw error;
    });
    const host = options.host.includes(':') ? `[${options.host}]` : options.host;
    const url = `http://${host}:${port}`;
    events.listening(url);
    if (settings.onStartFailure === 'continue') void servers.start(started, false);
    reload = (result) => {
      if (result instanceof SwitchboardError) {
        events.warned(`${result.message}\nThe configuration stays as it was.`);
        return;
      }
      const next = withOverrides(result, options);
      scope.configure(scopeSettings(next.settings));
      const changes = servers.apply(next.servers);
      gateway.regrouped();
      void servers.start(changes.started, false);
      scope.changes(offerKinds);
      const { started, changed, stopped } = changes;
      events.configApplied(started.map(nameOf), changed.map(nameOf), stopped.map(nameOf));
    };
    if (early !== undefined) reload(early);
    idleness = watchIdleness(gateway, options.exitWhenIdleMs, events);

    return { url, servers: () => servers.all().map(viewOf), stop };

    /** Where one server that cannot be started takes the others with it, clients come in when all are there. */
    async function startAndListen(): Promise<number> {
      const stopServers = () => void servers.stop();
      options.signal?.addEventListener('abort', stopServers);
      if (options.signal?.aborted) stopServers();
      if (settings.onStartFailure === 'abort') await servers.start(started, true);
      options.signal?.removeEventListener('abort', stopServers);
      return front.listen();
    }

    async function stop(): Promise<void> {
      clearInterval(idleness);
      watch.close();
      scope.close();
      gateway.close();
      api.close();
      await Promise.all([front.close(), servers.stop()]);
      record.close();
    }
  } catch (error) {
    watch.close();
    record.close();
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

function withOverrides(
  { servers, settings }: Configuration,
  { startup, onStartFailure = settings.onStartFailure }: AppOptions,
): Configuration {
  return {
    servers: startup === undefined ? servers : servers.map((server) => ({ ...server, startup })),
    settings: { ...settings, onStartFailure },
  };
}

function scopeSettings({ naming, separator, pageSize, discoveryWaitMs }: Settings) {
  return { mode: naming, separator, pageSize, discoveryWaitMs };
}

function nameOf({ name }: Server): string {
  return name;
}

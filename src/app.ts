import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Access } from './access/access.ts';
import { openToken } from './access/token.ts';
import { createApi } from './api/api.ts';
import type { ServerEvent, ServerView } from './api/views.ts';
import { createBackend } from './app/backend.ts';
import { Chats } from './app/chats.ts';
import { cutOff, type Drainable, drain, type Waiting, watchEnding } from './app/drain.ts';
import { Followers } from './app/followers.ts';
import { hostedViewOf } from './app/hosted-views.ts';
import { Hosting } from './app/hosting.ts';
import { watchIdleness } from './app/idleness.ts';
import { type LiveProject, unstoredProject } from './app/live-project.ts';
import { refuseTakenPort } from './app/port.ts';
import { Projects } from './app/projects.ts';
import { eventOf, startEvent, unchangedEvent, viewsOf } from './app/server-views.ts';
import { noStorage, ownSecretsIn, Storage } from './app/storage.ts';
import { trustAuthorities } from './channels/authorities.ts';
import type { Hosts } from './channels/hosted.ts';
import { proxyPasswords } from './channels/http-client/proxy.ts';
import { endLeftovers } from './channels/leftovers.ts';
import { ProcessRecord } from './channels/process-record.ts';
import {
  type Configuration,
  loadConfiguration,
  type ServerConfig,
  type Settings,
  selfWarnings,
  watchConfiguration,
} from './config.ts';
import { SwitchboardError } from './errors.ts';
import { Gateway } from './gateway/gateway.ts';
import { HttpFront } from './gateway/http/server.ts';
import type { CallRecorder } from './gateway/records.ts';
import { keepsNothing } from './gateway/session-keeper.ts';
import { STOP_GRACE_MS } from './hosting/settings.ts';
import { identity } from './identity.ts';
import type { Server, ServerEvents } from './upstreams/server.ts';
import { type Changes, startServers } from './upstreams/servers.ts';
import { limitsOf, type ReplicaSettings } from './upstreams/settings.ts';

export type { ServerEvent, ServerView, Waiting };

export interface AppOptions {
  configPath: string;
  host: string;
  port: number;
  /** The folder of this user's Switchboards. */
  home: string;
  /** Where projects are kept. Without one there is only what the configuration file says. */
  database:
    | { mode: 'none' }
    | { mode: 'embedded'; secretKey: string | undefined }
    | { mode: 'server'; url: string; secretKey: string | undefined };
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
  /** Something takes its time. */
  progressed(message: string): void;
  /** Clients are served from now on. */
  listening(url: string): void;
  /** `from` is the state of now where only what the server offers has changed. */
  serverChanged(event: ServerEvent): void;
  configApplied(started: string[], changed: string[], stopped: string[]): void;
  warned(message: string): void;
  idle(): void;
  /** A stop takes its time, because of this. */
  waiting(what: Waiting): void;
}

export interface App {
  /** The base address, without a path. */
  url: string;
  servers(): ServerView[];
  /** Calls under way may take so long, or else as long as the settings say. */
  stop(graceMs?: number): Promise<void>;
}

const loopbackHosts = new Set(['127.0.0.1', '::1', 'localhost']);

/** Puts the parts together and runs them until stop(). */
export async function startApp(options: AppOptions, events: AppEvents): Promise<App> {
  if (!loopbackHosts.has(options.host)) {
    throw new SwitchboardError(
      'invalid_config',
      `Switchboard is not opened to the network: it does not listen on ${options.host}. Use 127.0.0.1, and from other machines a tunnel (ssh -L).`,
    );
  }
  await refuseTakenPort(options.host, options.port);
  let early: Configuration | SwitchboardError | undefined;
  let reload = (result: Configuration | SwitchboardError): void => {
    early = result;
  };
  trustAuthorities(process.env, events.warned);
  const runFolder = join(options.home, 'run');
  await endLeftovers(runFolder, events.warned);
  const record = ProcessRecord.open(runFolder, events.warned);
  options.killSignal?.addEventListener('abort', () => record.killAll());
  const watch = watchConfiguration(options.configPath, (result) => reload(result), events.warned);
  let storage: Storage | undefined;
  try {
    const configuration = withOverrides(await loadConfiguration(options.configPath, events.warned), options);
    record.inheritsNetwork = configuration.settings.inheritNetwork;
    storage = await Storage.open(options, events);
    return await run(configuration, storage, tokenOf(options.home, events.warned));
  } catch (error) {
    watch.close();
    await storage?.store.close();
    record.close();
    throw error;
  }

  async function run(
    configuration: Configuration,
    storage: Storage | undefined,
    token: string | undefined,
  ): Promise<App> {
    const { settings } = configuration;
    const self = { identity: identity(), instance: randomUUID() };
    const followers = new Followers();
    let hosting: Hosting | undefined;
    const hosts: Hosts = { attach: (id) => needHosting(hosting).attach(id) };
    const serverSettings = serverSettingsOf(settings, self, record, hosts);
    /** Those that came before clients do. */
    let waiting: Server[] | undefined = [];

    const serverEvents: ServerEvents = {
      stateChanged: (server, replica, from) => {
        const project = projects.lookUp(server.project.id);
        if (project === undefined) return;
        const event = eventOf(project, server, replica, from);
        events.serverChanged(event);
        followers.changed(project, event);
        if (event.server.state === 'ready') stored?.memory.note(server);
      },
      offerChanged: (server, kinds) => {
        const project = projects.lookUp(server.project.id);
        if (project === undefined) return;
        if (server.condition.state === 'ready') events.serverChanged(unchangedEvent(project, server));
        projects.changed(project, kinds);
        stored?.memory.note(server);
      },
      connected: (origin) => {
        gateway.connected(origin);
        hosting?.connected(origin.server);
      },
      disconnected: (origin, upstream) => gateway.disconnected(origin, upstream),
      notified: (word) => gateway.notified(word),
      asked: (word) => gateway.asked(word),
      logged: (server, line) => hosting?.say(server, line),
      callsFailed: ({ name }, line) => events.warned(`Project "${name}": ${line}`),
    };
    const projects = new Projects(
      configuration,
      {
        servers: serverSettings,
        events: serverEvents,
        recall: (...asked) => stored?.memory.recall(...asked),
        openSecret: (sealed) => storage!.openSecret(sealed),
        ownSecrets: [...ownSecretsIn(options.database), ...proxyPasswords(process.env)],
        home: options.home,
        hostedTimeoutMs: settings.hosting.callTimeoutMs,
        startup: options.startup,
        warned: events.warned,
      },
      {
        listsChanged: (scope, lists, warnings) => {
          stored?.names.note(scope);
          gateway.announce(scope, lists);
          for (const warning of warnings) events.warned(warning);
        },
        applied: (project, changes) => applied(project, changes),
        removed: (project) => {
          gateway.endScope(project.scope);
          chats?.endOf(project);
          followers.removed(project);
        },
        refreshed: () => hosting?.refresh(),
      },
    );
    const stored = storage?.serve(projects, events, settings);
    if (stored !== undefined) {
      hosting = new Hosting({
        ...{ settings: settings.hosting, projects, store: stored.store, home: options.home },
        ...{ children: record, warned: events.warned },
        changed: (place) => {
          const server = hostedViewOf(place, needHosting(hosting));
          followers.hostedChanged(place.project, { time: new Date().toISOString(), server });
        },
        recorded: (call) => stored.recorder.record(call),
      });
    }
    const chats = stored === undefined ? undefined : new Chats(settings.chat, stored.store, events.warned);
    const gateway: Gateway = new Gateway(
      projects,
      stored?.recorder ?? noRecorder,
      stored?.sessions ?? keepsNothing,
      { ...self, ...settings },
    );
    const trials = new Set<Server>();
    const parts = { projects, stored, hosting, chats, servers: serverSettings, trials };
    const api = createApi(
      createBackend(parts, followers, () => ({
        ...{ version: self.identity.version, config: options.configPath },
        database: storage?.status ?? noStorage,
        records: { queued: stored?.recorder.queued ?? 0, dropped: stored?.recorder.dropped ?? 0 },
        sessions: gateway.clientCount,
      })),
      (thrown) => events.warned(`internal error: ${(thrown as Error)?.stack ?? thrown}`),
    );
    const front = new HttpFront(gateway, api, new Access(token), { ...settings, ...options });
    const clients = {
      get count() {
        return gateway.clientCount + (chats?.count ?? 0);
      },
    };
    const idleness = watchIdleness(clients, options.exitWhenIdleMs, events.idle);

    const port = await startAndListen().catch(async (error: unknown) => {
      await stop();
      throw error;
    });
    const host = options.host.includes(':') ? `[${options.host}]` : options.host;
    const url = `http://${host}:${port}`;
    events.listening(url);
    const warnOfSelf = ({ servers }: Configuration) => {
      for (const warning of selfWarnings(servers, url)) events.warned(`${options.configPath}: ${warning}`);
    };
    warnOfSelf(configuration);
    hosting?.start();
    const first = waiting;
    waiting = undefined;
    // Those that we run have somebody who looks after them: that one of them fails is no reason to end.
    void startServers(settings.onStartFailure === 'continue' ? first : first.filter(isHosted), false);
    reload = (result) => {
      if (result instanceof SwitchboardError) {
        events.warned(`${result.message}\nThe configuration stays as it was.`);
        return;
      }
      warnOfSelf(result);
      const isApplied = projects.configure(withOverrides(result, options));
      if (!isApplied) events.configApplied([], [], []);
    };
    if (early !== undefined) reload(early);

    return { url, servers: () => projects.list().flatMap(viewsOf), stop };

    function applied(project: LiveProject, changes: Changes): void {
      if (waiting !== undefined) {
        waiting.push(...changes.started);
        return;
      }
      gateway.regrouped(project.servers);
      for (const server of changes.started) followers.changed(project, startEvent(project, server));
      void startServers(changes.started, false);
      const nameOf = ({ name }: Server) => (project.isDefault ? name : `${project.name}/${name}`);
      const { started, changed, stopped } = changes;
      events.configApplied(started.map(nameOf), changed.map(nameOf), stopped.map(nameOf));
    }

    /** Where one server that cannot be started takes the others with it, clients come in when all are there. */
    async function startAndListen(): Promise<number> {
      if (stored === undefined) projects.apply(unstoredProject);
      else await storage?.begin(stored, projects);
      const stopServers = () => void projects.stop();
      options.signal?.addEventListener('abort', stopServers);
      if (options.signal?.aborted) stopServers();
      if (settings.onStartFailure === 'abort') {
        await startServers(waiting?.filter((server) => !isHosted(server)) ?? [], true);
      }
      options.signal?.removeEventListener('abort', stopServers);
      projects.settle();
      return front.listen();
    }

    async function stop(graceMs = settings.shutdownGraceMs): Promise<void> {
      clearInterval(idleness);
      watch.close();
      front.drain();
      api.close();
      const trialsOver = [...trials].map((server) => server.stop());
      const chatsOver = chats?.close();
      const cut = await drain(drainables(), graceMs, events.waiting);
      if (cut.calls > 0 && graceMs > 0) events.warned(cutOff(cut));
      const left = stored && storage?.leave(stored);
      gateway.close();
      hosting?.calls.cut();
      const frontOver = front.close(graceMs === 0 ? 0 : FLUSH_MS);
      const told = watchEnding(() => hosting?.ending ?? [], SLOW_END_MS, STOP_GRACE_MS, events.waiting);
      await Promise.all([chatsOver, frontOver, projects.stop(), hosting?.close(), left, ...trialsOver]);
      told();
      if (stored !== undefined) await storage?.close(stored);
      record.close();
    }

    function drainables(): Drainable[] {
      if (hosting === undefined) return [gateway];
      const { calls } = hosting;
      return [gateway, { drain: () => calls.drain(), underWay: () => calls.servers }];
    }
  }
}

/** What was written when all is over may take so long to leave. */
const FLUSH_MS = 1_000;
/** Hosted servers that take longer to end are told of. */
const SLOW_END_MS = 2_000;

function isHosted({ config }: Server): boolean {
  return config.transport.type === 'hosted';
}

function needHosting(hosting: Hosting | undefined): Hosting {
  if (hosting !== undefined) return hosting;
  throw new SwitchboardError('no_database', 'Hosted servers need a database.');
}

/** Without a token our own user is let in, and nobody else. */
function tokenOf(home: string, warn: (message: string) => void): string | undefined {
  try {
    return openToken(home, warn);
  } catch (error) {
    warn(`There is no token to be let in with: ${(error as Error).message}`);
    return undefined;
  }
}

const noRecorder: CallRecorder = { keepsPayloads: () => false, record() {} };

function serverSettingsOf(
  settings: Settings,
  self: Pick<ReplicaSettings, 'identity' | 'instance'>,
  children: ReplicaSettings['children'],
  hosts: Hosts,
): Omit<ReplicaSettings, 'project' | 'variable' | 'given' | 'redact'> {
  return { ...self, ...limitsOf(settings), children, hosts };
}

function withOverrides(configuration: Configuration, { onStartFailure }: AppOptions): Configuration {
  if (onStartFailure === undefined) return configuration;
  return { ...configuration, settings: { ...configuration.settings, onStartFailure } };
}

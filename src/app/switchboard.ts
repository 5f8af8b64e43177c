import { randomUUID } from 'node:crypto';
import { createApi } from '../api/api.ts';
import { hostedViewOf } from '../api/hosted-view.ts';
import { ProjectEvents } from '../api/project-events.ts';
import { offerEvent, serverViewsOf, startEvent, stateEvent } from '../api/server-view.ts';
import type { Services } from '../api/services.ts';
import type { ServerView } from '../api/views.ts';
import type { Hosts } from '../channels/hosted.ts';
import { proxyPasswords } from '../channels/http-client/proxy.ts';
import type { ProcessRecord } from '../channels/process-record.ts';
import { Chats } from '../chats/chats.ts';
import { type Configuration, selfWarnings } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { Gateway } from '../gateway/gateway.ts';
import { HttpFront } from '../gateway/http/server.ts';
import type { Certificate } from '../gateway/http/tls.ts';
import { noPersistence } from '../gateway/legacy/persistence.ts';
import { recordsNothing } from '../gateway/records.ts';
import { STOP_GRACE_MS } from '../hosting/driver.ts';
import { Hosting } from '../projects/hosting/hosting.ts';
import { type LiveProject, unstoredProject } from '../projects/live-project.ts';
import { Projects, type ProjectsEvents } from '../projects/projects.ts';
import { identity } from '../self-identity.ts';
import type { Server, ServerEvents } from '../upstreams/server.ts';
import { type Changes, startServers } from '../upstreams/servers.ts';
import { limitsOf } from '../upstreams/settings.ts';
import { baseUrl } from './address.ts';
import { type AuthenticatedSettings, warnOfPending } from './authentication.ts';
import { cutOff, drain, watchEnding, watchIdleness } from './drain.ts';
import { Identity } from './identity.ts';
import { identityEvents } from './identity-events.ts';
import { type App, type AppEvents, type AppOptions, withOverrides } from './options.ts';
import { type OpenDatabase, ownSecretsIn, Persistence } from './persistence.ts';
import { servicesOf } from './services.ts';

interface Opened {
  configuration: Configuration & { settings: AuthenticatedSettings };
  database: OpenDatabase | undefined;
  token: string | undefined;
  certificate: Certificate | undefined;
  record: ProcessRecord;
  watch: { close(): void };
  options: AppOptions;
  events: AppEvents;
}

const FLUSH_MS = 1_000;
/** Hosted servers that take longer to exit are reported. */
const SLOW_END_MS = 2_000;

/** The running program: projects and their servers, the gateway in front of them, and the API. */
export class Switchboard implements App {
  url = '';
  private readonly opened: Opened;
  private readonly settings: AuthenticatedSettings;
  private readonly self = { identity: identity(), instance: randomUUID() };
  private readonly serverSettings: Services['serverSettings'];
  private readonly projectEvents = new ProjectEvents();
  private readonly projects: Projects;
  private readonly persistence: Persistence | undefined;
  private readonly hosting: Hosting | undefined;
  private readonly chats: Chats | undefined;
  private readonly identity: Identity;
  private readonly gateway: Gateway;
  private readonly api: ReturnType<typeof createApi>;
  private readonly front: HttpFront;
  private readonly idleness: NodeJS.Timeout | undefined;
  readonly services: Services;
  /** Servers that were created before clients are accepted. */
  private waiting: Server[] | undefined = [];

  constructor(opened: Opened) {
    this.opened = opened;
    this.settings = opened.configuration.settings;
    const { database, token, certificate, record, options, events } = opened;
    const { settings } = this;
    const hosts: Hosts = { attach: (id) => this.needHosting().attach(id) };
    this.serverSettings = { ...this.self, ...limitsOf(settings), children: record, hosts };
    this.projects = this.createProjects();
    this.persistence = database && new Persistence(database.store, this.projects, events, settings);
    this.hosting = this.persistence && this.createHosting(this.persistence);
    this.chats = database && new Chats(settings.chat, database.store, events.warned);
    this.identity = new Identity(
      database?.store,
      token,
      settings,
      identityEvents(() => ({
        gateway: this.gateway,
        api: this.api,
        chats: this.chats,
        projects: this.projects,
      })),
    );
    this.gateway = new Gateway(
      this.projects,
      { recorder: this.persistence?.recorder ?? recordsNothing, ...this.identity.guards },
      this.persistence?.sessions ?? noPersistence,
      { ...this.self, ...settings },
    );
    this.services = servicesOf({
      ...{ projects: this.projects, events: this.projectEvents, serverSettings: this.serverSettings },
      ...{ identity: this.identity, openDatabase: database, persistence: this.persistence },
      ...{ hosting: this.hosting, chats: this.chats, settings, configPath: options.configPath },
      ...{ version: this.self.identity.version, sessionCount: () => this.gateway.clientCount },
    });
    this.api = createApi(this.services, (thrown) =>
      events.warned(`internal error: ${(thrown as Error)?.stack ?? thrown}`),
    );
    const front = { ...options, ...settings };
    this.front = new HttpFront(this.gateway, this.api, this.identity.access, front, certificate);
    this.idleness = watchIdleness(this, options.exitWhenIdleMs, events.idle);
  }

  get count(): number {
    return this.gateway.clientCount + (this.chats?.count ?? 0);
  }

  servers(): ServerView[] {
    return this.projects.list().flatMap(serverViewsOf);
  }

  async start(): Promise<void> {
    const { configuration, options, events } = this.opened;
    const port = await this.startAndListen().catch(async (error: unknown) => {
      await this.stop();
      throw error;
    });
    this.url = baseUrl(options.host, port, this.opened.certificate !== undefined);
    events.listening(this.url, this.settings);
    this.warnOfSelf(configuration);
    this.hosting?.start();
    const first = this.waiting ?? [];
    this.waiting = undefined;
    // The supervisor handles hosted servers: a failure of one does not abort the start.
    const { onStartFailure } = configuration.settings;
    void startServers(onStartFailure === 'continue' ? first : first.filter(isHosted), false);
  }

  reload(result: Configuration | SwitchboardError): void {
    const { options, events } = this.opened;
    if (result instanceof SwitchboardError) {
      events.warned(`${result.message}\nThe previous configuration stays in effect.`);
      return;
    }
    this.warnOfSelf(result);
    warnOfPending(result, options, this.settings, events.warned);
    if (!this.projects.configure(withOverrides(result, options))) events.configApplied([], [], []);
  }

  async stop(graceMs = this.settings.shutdownGraceMs): Promise<void> {
    const { record, watch, events } = this.opened;
    const { persistence, hosting, gateway, front, projects } = this;
    clearInterval(this.idleness);
    watch.close();
    front.drain();
    this.api.close();
    const testsOver = [...this.services.testedServers].map((server) => server.stop());
    const chatsOver = this.chats?.close();
    const drained = hosting === undefined ? [gateway] : [gateway, hosting.calls];
    const cut = await drain(drained, graceMs, events.waiting);
    if (cut.calls > 0 && graceMs > 0) events.warned(cutOff(cut));
    const detached = persistence?.detach();
    gateway.close();
    hosting?.calls.abortAll();
    const frontOver = front.close(graceMs === 0 ? 0 : FLUSH_MS);
    const ending = () => hosting?.supervisor?.ending ?? [];
    const cancelReport = watchEnding(ending, SLOW_END_MS, STOP_GRACE_MS, events.waiting);
    await Promise.all([chatsOver, frontOver, projects.stop(), hosting?.close(), detached, ...testsOver]);
    cancelReport();
    await this.identity.close();
    await persistence?.close();
    record.close();
  }

  private createProjects(): Projects {
    const { configuration, database, options, events } = this.opened;
    return new Projects(
      configuration,
      {
        servers: this.serverSettings,
        events: this.serverEvents(),
        recall: (...args) => this.persistence?.offers.restore(...args),
        openSecret: (sealed) => database!.store.secrets.open(sealed),
        ownSecrets: [...ownSecretsIn(options.database), ...proxyPasswords(process.env)],
        home: options.home,
        hostedTimeoutMs: this.settings.hosting.callTimeoutMs,
        startup: options.startup,
        warned: events.warned,
      },
      this.projectsEvents(),
    );
  }

  private serverEvents(): ServerEvents {
    const { events } = this.opened;
    return {
      stateChanged: (server, replica, from) => {
        const project = this.projects.lookUp(server.project.id);
        if (project === undefined) return;
        const event = stateEvent(project, server, replica, from);
        events.serverChanged(event);
        this.projectEvents.serverChanged(project, event);
        if (event.server.state === 'ready') this.persistence?.offers.update(server);
      },
      offerChanged: (server, kinds) => {
        const project = this.projects.lookUp(server.project.id);
        if (project === undefined) return;
        if (server.condition.state === 'ready') events.serverChanged(offerEvent(project, server));
        this.projects.changed(project, kinds);
        this.persistence?.offers.update(server);
      },
      connected: (origin) => {
        this.gateway.connected(origin);
        this.hosting?.connected(origin.server);
      },
      disconnected: (origin, upstream) => this.gateway.disconnected(origin, upstream),
      notificationReceived: (message) => this.gateway.onNotification(message),
      requestReceived: (message) => this.gateway.onServerRequest(message),
      logged: (server, line) => this.hosting?.log(server, line),
      callsFailed: ({ name }, line) => events.warned(`Project "${name}": ${line}`),
    };
  }

  private projectsEvents(): ProjectsEvents {
    return {
      listsChanged: (scope, lists, warnings) => {
        this.persistence?.names.update(scope);
        this.gateway.listsChanged(scope, lists);
        for (const warning of warnings) this.opened.events.warned(warning);
      },
      permittedListsChanged: (scope, lists) => this.gateway.listsChanged(scope, lists),
      applied: (project, changes) => this.applied(project, changes),
      removed: (project, scopes) => {
        for (const scope of scopes) this.gateway.endScope(scope);
        this.chats?.endOf(project);
        this.projectEvents.projectRemoved(project);
      },
      refreshed: () => this.hosting?.refresh(),
    };
  }

  private createHosting({ store, recorder }: Persistence): Hosting {
    const { record, options, events } = this.opened;
    return new Hosting({
      ...{ settings: this.settings.hosting, projects: this.projects, store, home: options.home },
      ...{ children: record, warned: events.warned },
      changed: (place) => {
        const server = hostedViewOf(place, this.needHosting());
        this.projectEvents.hostedChanged(place.project, { time: new Date().toISOString(), server });
      },
      recorded: (call) => recorder.record(call),
    });
  }

  private applied(project: LiveProject, changes: Changes): void {
    if (this.waiting !== undefined) {
      this.waiting.push(...changes.started);
      return;
    }
    this.gateway.regrouped(project.servers);
    for (const server of changes.started)
      this.projectEvents.serverChanged(project, startEvent(project, server));
    void startServers(changes.started, false);
    const nameOf = ({ name }: Server) => (project.isDefault ? name : `${project.name}/${name}`);
    const { started, changed, stopped } = changes;
    this.opened.events.configApplied(started.map(nameOf), changed.map(nameOf), stopped.map(nameOf));
  }

  /** With onStartFailure "abort", clients are accepted only after all servers have started. */
  private async startAndListen(): Promise<number> {
    const { options } = this.opened;
    const { projects, persistence } = this;
    if (persistence === undefined) projects.apply(unstoredProject);
    else await persistence.start();
    await this.identity.start();
    const stopServers = () => void projects.stop();
    options.signal?.addEventListener('abort', stopServers);
    if (options.signal?.aborted) stopServers();
    if (this.settings.onStartFailure === 'abort') {
      await startServers(this.waiting?.filter((server) => !isHosted(server)) ?? [], true);
    }
    options.signal?.removeEventListener('abort', stopServers);
    projects.settle();
    return this.front.listen();
  }

  private warnOfSelf({ servers }: Configuration): void {
    const { options, events } = this.opened;
    for (const warning of selfWarnings(servers, this.url)) events.warned(`${options.configPath}: ${warning}`);
  }

  private needHosting(): Hosting {
    if (this.hosting !== undefined) return this.hosting;
    throw new SwitchboardError('no_database', 'Hosted servers need a database.');
  }
}

function isHosted({ config }: Server): boolean {
  return config.transport.type === 'hosted';
}

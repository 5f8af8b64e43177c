import type { Attachment, Hosts } from '../../channels/hosted.ts';
import type { ChildRecord } from '../../channels/stdio.ts';
import type { HostingSettings } from '../../config.ts';
import { SwitchboardError } from '../../errors.ts';
import type { FinishedCall } from '../../gateway/records.ts';
import { LogSubscriptions } from '../../hosting/log.ts';
import { withoutLastLines } from '../../hosting/run.ts';
import type { Supervisor } from '../../hosting/supervisor.ts';
import type { Store } from '../../store/store.ts';
import type { Server } from '../../upstreams/server.ts';
import { hostedServerOf } from '../hosted-rows.ts';
import type { Projects } from '../projects.ts';
import { attachWhenListening } from './address.ts';
import { HostedCalls } from './calls.ts';
import { Heartbeats } from './heartbeats.ts';
import { type RegisteredServer, RegisteredServers } from './registered.ts';
import { StatusWriter } from './status-writer.ts';

interface HostingOptions {
  settings: HostingSettings;
  projects: Projects;
  store: Store;
  home: string;
  children: ChildRecord;
  warned(message: string): void;
  changed(server: RegisteredServer): void;
  recorded(call: FinishedCall): void;
}

/** How long to wait for the database before the servers are left to another process. */
const YIELD_MS = 5_000;
const DEFAULT_ENGINE = '/var/run/docker.sock';

/** Runs the hosted servers of all projects. One process on a database does; the others show the persisted status. */
export class Hosting implements Hosts {
  readonly registered: RegisteredServers;
  readonly calls: HostedCalls;
  readonly logs = new LogSubscriptions((id) => this.running?.log(id));
  private readonly options: HostingOptions;
  private readonly statusWriter: StatusWriter;
  private readonly heartbeats: Heartbeats;
  private running: Supervisor | undefined;
  private loading: Promise<void> | undefined;
  private leave = () => {};
  private yielding: NodeJS.Timeout | undefined;
  private isHost = false;
  private readonly decided = Promise.withResolvers<void>();
  private isClosed = false;

  constructor(options: HostingOptions) {
    this.options = options;
    this.statusWriter = new StatusWriter(options.store.hosted, options.warned);
    this.registered = new RegisteredServers(options.projects);
    this.calls = new HostedCalls({
      registered: this.registered,
      timeoutMs: options.settings.callTimeoutMs,
      timedOut: (id, message) => {
        this.running?.log(id)?.add(message);
        options.warned(message);
      },
      recorded: options.recorded,
    });
    this.heartbeats = new Heartbeats(options.settings, {
      server: (id) => this.registered.server(id),
      ping: async (id, timeoutMs) => void (await this.calls.request(id, { method: 'ping', timeoutMs })),
      changed: (...result) => this.running?.heartbeat(...result),
    });
  }

  start(): void {
    this.leave = this.options.store.contendForHost((isHost) => this.chosen(isHost));
  }

  refresh(): void {
    const servers = this.registered.all();
    const ids = new Set(servers.map(({ row }) => row.id));
    this.logs.retain(ids);
    if (!this.isHost || this.isClosed) return;
    if (this.running === undefined) {
      if (servers.length > 0) void this.ensureLoaded();
      return;
    }
    const { allow } = this.options.settings;
    this.running.apply(servers.map(({ row, project }) => hostedServerOf(row, project, allow)));
    this.heartbeats.retain(ids);
    this.logs.refresh();
  }

  /** Resolves when the supervisor knows the rows. */
  async settled(): Promise<void> {
    await this.loading;
  }

  get runsHere(): boolean {
    return this.isHost;
  }

  /** Undefined if another process hosts, or nothing is hosted yet. */
  get supervisor(): Supervisor | undefined {
    return this.running;
  }

  /** Rejects if another process hosts the server. */
  async requireSupervisor(id: string): Promise<Supervisor> {
    const supervisor = await this.findSupervisor(id);
    if (supervisor !== undefined) return supervisor;
    const name = this.registered.nameOf(id);
    throw new SwitchboardError(
      'server_unavailable',
      this.isHost
        ? `The hosted server "${name}" is not running yet: try again.`
        : `The hosted server "${name}" runs in another Switchboard on the same database: send the request to that one.`,
    );
  }

  async attach(id: string): Promise<Attachment> {
    const supervisor = await this.findSupervisor(id);
    if (supervisor === undefined) {
      throw new SwitchboardError(
        'server_unavailable',
        this.isHost
          ? 'it is not running yet'
          : 'it runs in another Switchboard on the same database, and can only be reached through that one',
      );
    }
    return attachWhenListening(
      () => supervisor.attach(id),
      () => this.registered.find(id)?.row.mcp_config.path ?? '/mcp',
    );
  }

  /** Starts an enabled server that has exited and that its policy does not restart. */
  startExited(id: string): void {
    const status = this.running?.status(id)?.status;
    // A failure shows in its status.
    if (status === 'stopped' || status === 'failed') this.running?.restart(id).catch(() => {});
  }

  /** Rejects if another process hosts. */
  async removeOrphanedVolumes(server: { name: string; project: string }): Promise<string[]> {
    await this.decided.promise;
    // Nothing is loaded while no server is registered.
    if (this.isHost) await this.ensureLoaded();
    return (await this.requireSupervisor(server.name)).removeOrphanedVolumes(server);
  }

  /** Adds a message of the gateway to the server's log. */
  log({ config: { transport } }: Server, line: string): void {
    // The log already has the server's last output.
    if (transport.type === 'hosted') this.running?.log(transport.id)?.add(withoutLastLines(line));
  }

  connected({ config: { transport } }: Server): void {
    if (transport.type === 'hosted') this.running?.initialized(transport.id);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.decided.resolve();
    clearInterval(this.yielding);
    this.heartbeats.retain(new Set());
    await this.loading;
    await this.running?.stop();
    await this.statusWriter.close();
    this.leave();
  }

  private chosen(isHost: boolean): void {
    this.isHost = isHost;
    this.decided.resolve();
    clearInterval(this.yielding);
    if (isHost) {
      this.statusWriter.resume();
      this.refresh();
      return;
    }
    this.statusWriter.pause();
    // If only the database is unavailable, the servers keep running. Another process that took over gets them.
    this.yielding = setInterval(() => this.yieldIfReplaced(), YIELD_MS).unref();
  }

  private yieldIfReplaced(): void {
    if (!this.options.store.isConnected || this.isHost) return;
    clearInterval(this.yielding);
    this.heartbeats.retain(new Set());
    this.running?.release();
    this.running = undefined;
    this.statusWriter.discard();
  }

  private async ensureLoaded(): Promise<void> {
    if (this.running !== undefined) return;
    this.loading ??= this.load().catch((error: Error) => {
      this.loading = undefined;
      this.options.warned(`Hosted servers cannot run: ${error.message}`);
    });
    await this.loading;
  }

  private async load(): Promise<void> {
    const { settings, home, children, warned } = this.options;
    const [{ Supervisor }, { createDrivers }] = await Promise.all([
      import('../../hosting/supervisor.ts'),
      import('../../hosting/drivers.ts'),
    ]);
    const { DOCKER_HOST, E2B_API_KEY: apiKey, E2B_DOMAIN: domain } = process.env;
    const drivers = createDrivers({
      ...settings,
      engine: settings.engine ?? (DOCKER_HOST || DEFAULT_ENGINE),
      ...{ home, children, owner: this.registered.owner, e2b: { apiKey, domain } },
    });
    // If this process becomes the host again later, it loads again.
    this.loading = undefined;
    if (this.isClosed || !this.isHost) return;
    this.running = new Supervisor(
      drivers,
      { redact: (project, text) => this.registered.redact(project, text) },
      {
        warned,
        changed: (id, report) => {
          this.statusWriter.add(id, report);
          const server = this.registered.find(id);
          if (server !== undefined) this.options.changed(server);
        },
        running: (id) => {
          this.registered.server(id)?.retry();
          this.heartbeats.begin(id);
        },
      },
    );
    this.refresh();
  }

  /** Undefined if another process hosts. */
  private async findSupervisor(id: string): Promise<Supervisor | undefined> {
    await this.decided.promise;
    // It may have been registered a moment ago.
    if (this.running?.status(id) === undefined) this.refresh();
    await this.loading;
    return this.running;
  }
}

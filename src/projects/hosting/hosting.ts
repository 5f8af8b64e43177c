import type { Attachment, Hosts } from '../../channels/hosted.ts';
import type { ChildRecord } from '../../channels/stdio.ts';
import type { HostingSettings } from '../../config.ts';
import { SwitchboardError } from '../../errors.ts';
import type { FinishedCall } from '../../gateway/records.ts';
import { withoutLastWords } from '../../hosting/crash-description.ts';
import type { Usage } from '../../hosting/driver.ts';
import type { LogLine } from '../../hosting/log.ts';
import type { Condition, Supervisor } from '../../hosting/supervisor.ts';
import type { Store } from '../../store/store.ts';
import type { Server } from '../../upstreams/server.ts';
import { hostedServerOf } from '../hosted-rows.ts';
import type { Projects } from '../projects.ts';
import { servedAttachment } from './address.ts';
import { HostedCalls } from './calls.ts';
import { Heartbeats } from './heartbeats.ts';
import { LogFollowers, type LogListener } from './log-followers.ts';
import { type RegisteredServer, RegisteredServers } from './registered.ts';
import { StatusWriter } from './status-writer.ts';

interface HostingOptions {
  settings: HostingSettings;
  projects: Projects;
  store: Store;
  home: string;
  children: ChildRecord;
  warned(message: string): void;
  /** It fares otherwise than before. */
  changed(server: RegisteredServer): void;
  recorded(call: FinishedCall): void;
}

/** Another process is given this long to be the same one, come back, before what runs here is left to it. */
const YIELD_MS = 5_000;
const DEFAULT_ENGINE = '/var/run/docker.sock';

/** The servers that we run ourselves. Of all processes on a database one does; the others only show how they fare. */
export class Hosting implements Hosts {
  private readonly options: HostingOptions;
  private readonly notes: StatusWriter;
  private readonly heartbeats: Heartbeats;
  readonly registered: RegisteredServers;
  readonly calls: HostedCalls;
  private readonly followers = new LogFollowers((id) => this.supervisor?.log(id));
  private supervisor: Supervisor | undefined;
  private loading: Promise<void> | undefined;
  private leave = () => {};
  private yielding: NodeJS.Timeout | undefined;
  private isHost = false;
  /** Settles when it is known whether this process hosts. */
  private readonly decided = Promise.withResolvers<void>();
  private isClosed = false;

  constructor(options: HostingOptions) {
    this.options = options;
    this.notes = new StatusWriter(options.store.hosted, options.warned);
    this.registered = new RegisteredServers(options.projects);
    this.calls = new HostedCalls({
      registered: this.registered,
      timeoutMs: options.settings.callTimeoutMs,
      timedOut: (id, message) => {
        this.supervisor?.log(id)?.add(message);
        options.warned(message);
      },
      recorded: options.recorded,
    });
    this.heartbeats = new Heartbeats(options.settings, {
      server: (id) => this.registered.server(id),
      ping: async (id, timeoutMs) => void (await this.calls.request(id, { method: 'ping', timeoutMs })),
      changed: (...told) => this.supervisor?.responds(...told),
    });
  }

  /** All projects are known: from now on what is written down of them runs. */
  start(): void {
    this.leave = this.options.store.contendForHost((isHost) => this.chosen(isHost));
  }

  /** What is written down may be another. */
  refresh(): void {
    const places = this.registered.all();
    const ids = new Set(places.map(({ row }) => row.id));
    this.followers.keep(ids);
    if (!this.isHost || this.isClosed) return;
    if (this.supervisor === undefined) {
      if (places.length > 0) this.loading ??= this.load().catch((error: Error) => this.loadFailed(error));
      return;
    }
    const { allow } = this.options.settings;
    this.supervisor.apply(places.map(({ row, project }) => hostedServerOf(row, project, allow)));
    this.heartbeats.keep(ids);
    this.followers.refresh();
  }

  /** Settles when what is written down is known to whoever runs it. */
  async settled(): Promise<void> {
    await this.loading;
  }

  /** Whether it is this process that runs them. */
  get runsHere(): boolean {
    return this.isHost;
  }

  condition(id: string): Condition | undefined {
    return this.supervisor?.condition(id);
  }

  /** The last lines of its log. */
  lines(id: string): readonly LogLine[] {
    return this.supervisor?.log(id)?.lines ?? [];
  }

  /** The same, and every line after them. */
  follow(id: string, listener: LogListener): { lines: readonly LogLine[]; stop(): void } {
    return this.followers.add(id, listener);
  }

  async usage(id: string): Promise<Usage | undefined> {
    return this.supervisor?.usage(id);
  }

  async attach(id: string): Promise<Attachment> {
    const supervisor = await this.supervisorOf(id);
    if (supervisor === undefined) {
      throw new SwitchboardError(
        'server_unavailable',
        this.isHost
          ? 'it is not run yet'
          : 'it is run by another Switchboard on the same database, and can be reached through that one only',
      );
    }
    return servedAttachment(
      () => supervisor.attach(id),
      () => this.registered.find(id)?.row.mcp_config.path ?? '/mcp',
    );
  }

  async restart(id: string): Promise<void> {
    await (await this.needSupervisor(id)).restart(id);
  }

  /** Starts one that is to run, but has ended, and would not be started again by itself. */
  startEnded(id: string): void {
    const status = this.condition(id)?.status;
    // What becomes of it is seen in its condition.
    if (status === 'stopped' || status === 'failed') this.supervisor?.restart(id).catch(() => {});
  }

  /** Fails where another process runs it. */
  async needHere(id: string): Promise<void> {
    await this.needSupervisor(id);
  }

  /** Why its volumes could not be removed now. Fails where another process runs it. */
  async volumesUnavailable(id: string): Promise<string | undefined> {
    return (await this.needSupervisor(id)).volumesUnavailable(id);
  }

  /** Of one that is no longer written down. */
  async removeVolumes(id: string): Promise<string[]> {
    return (await this.needSupervisor(id)).removeVolumes(id);
  }

  /** What a server that is not written down any more has kept. Fails where another process hosts. */
  async removeKept(server: { name: string; project: string }): Promise<string[]> {
    await this.decided.promise;
    if (this.isHost && this.supervisor === undefined) {
      // Nothing was written down so far.
      this.loading ??= this.load().catch((error: Error) => this.loadFailed(error));
      await this.loading;
    }
    return (await this.needSupervisor(server.name)).removeKept(server);
  }

  /** What its provider calls its volumes. */
  async volumeNames(id: string): Promise<string[] | undefined> {
    return this.supervisor?.volumeNames(id);
  }

  /** Something that the gateway has to say of one of them. */
  say(server: Server, line: string): void {
    const { transport } = server.config;
    // What it wrote last is in its log already.
    if (transport.type === 'hosted') this.supervisor?.log(transport.id)?.add(withoutLastWords(line));
  }

  /** The gateway has completed the MCP handshake with a server. */
  connected({ config: { transport } }: Server): void {
    if (transport.type === 'hosted') this.supervisor?.speaks(transport.id);
  }

  /** The names of those that were asked to end, and have not yet. */
  get ending(): string[] {
    return this.supervisor?.ending ?? [];
  }

  /** Stops all of them: each is asked to end, and ended after its time. */
  async close(): Promise<void> {
    this.isClosed = true;
    this.decided.resolve();
    clearInterval(this.yielding);
    this.heartbeats.keep(new Set());
    await this.loading;
    await this.supervisor?.stop();
    await this.notes.close();
    this.leave();
  }

  private chosen(isHost: boolean): void {
    this.isHost = isHost;
    this.decided.resolve();
    clearInterval(this.yielding);
    if (isHost) {
      this.notes.resume();
      this.refresh();
      return;
    }
    this.notes.hold();
    // The database may only be away, and what runs goes on; but where another process has taken over, it is for that one.
    this.yielding = setInterval(() => this.yieldIfOther(), YIELD_MS).unref();
  }

  private yieldIfOther(): void {
    if (!this.options.store.isConnected || this.isHost) return;
    clearInterval(this.yielding);
    this.heartbeats.keep(new Set());
    this.supervisor?.release();
    this.supervisor = undefined;
    this.notes.forget();
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
      runtimes: { gvisor: settings.runtimes.gvisor, firecracker: settings.runtimes.firecracker },
      ...{ home, children, owner: this.registered.owner, e2b: { apiKey, domain } },
    });
    // Whoever becomes the host from now on, perhaps again, begins anew.
    this.loading = undefined;
    if (this.isClosed || !this.isHost) return;
    this.supervisor = new Supervisor(
      drivers,
      { redact: (project, text) => this.registered.redact(project, text) },
      {
        warned,
        changed: (id, condition) => {
          this.notes.note(id, condition);
          const place = this.registered.find(id);
          if (place !== undefined) this.options.changed(place);
        },
        running: (id) => this.running(id),
      },
    );
    this.refresh();
  }

  private loadFailed(error: Error): void {
    this.loading = undefined;
    this.options.warned(`Hosted servers cannot be run: ${error.message}`);
  }

  private running(id: string): void {
    this.registered.server(id)?.retry();
    this.heartbeats.begin(id);
  }

  /** Undefined where another process runs it. */
  private async supervisorOf(id: string): Promise<Supervisor | undefined> {
    await this.decided.promise;
    // It may have been written down a moment ago.
    if (this.supervisor?.condition(id) === undefined) this.refresh();
    await this.loading;
    return this.supervisor;
  }

  private async needSupervisor(id: string): Promise<Supervisor> {
    const supervisor = await this.supervisorOf(id);
    if (supervisor !== undefined) return supervisor;
    const name = this.registered.nameOf(id);
    throw new SwitchboardError(
      'server_unavailable',
      this.isHost
        ? `The hosted server "${name}" is not run yet: try again.`
        : `The hosted server "${name}" is run by another Switchboard on the same database: ask that one.`,
    );
  }
}

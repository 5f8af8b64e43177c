import type { Attachment, Hosts } from '../channels/hosted.ts';
import type { ChildRecord } from '../channels/stdio.ts';
import type { HostingSettings } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { FinishedCall } from '../gateway/records.ts';
import { withoutLastWords } from '../hosting/crash-words.ts';
import type { Usage } from '../hosting/driver.ts';
import type { LogLine } from '../hosting/log.ts';
import type { Condition, Supervisor } from '../hosting/supervisor.ts';
import type { Store } from '../store/types.ts';
import {
  type RequestInput,
  type RequestOutcome,
  type RpcResponse,
  requestServer,
} from '../upstreams/group-request.ts';
import type { Server } from '../upstreams/server.ts';
import type { Project } from '../upstreams/settings.ts';
import { CallsUnderWay } from './calls-under-way.ts';
import { EnvironmentMask } from './environment-mask.ts';
import { Heartbeats } from './heartbeats.ts';
import { servedAttachment } from './hosted-address.ts';
import { LogFollowers, type LogListener } from './hosted-log-followers.ts';
import { HostedNotes } from './hosted-notes.ts';
import { type HostedRow, hostedServerOf } from './hosted-rows.ts';
import type { LiveProject } from './live-project.ts';
import type { Projects } from './projects.ts';

interface HostingOptions {
  settings: HostingSettings;
  projects: Projects;
  store: Store;
  home: string;
  children: ChildRecord;
  warned(message: string): void;
  /** It fares otherwise than before. */
  changed(place: HostedPlace): void;
  recorded(call: FinishedCall): void;
}

/** Another process is given this long to be the same one, come back, before what runs here is left to it. */
const YIELD_MS = 5_000;
const DEFAULT_ENGINE = '/var/run/docker.sock';

/** A hosted server, where it is written down. */
export interface HostedPlace {
  row: HostedRow;
  project: LiveProject;
}

/** The servers that we run ourselves. Of all processes on a database one does; the others only show how they fare. */
export class Hosting implements Hosts {
  private readonly options: HostingOptions;
  private readonly notes: HostedNotes;
  private readonly heartbeats: Heartbeats;
  private readonly masks = new WeakMap<LiveProject, EnvironmentMask>();
  private readonly followers = new LogFollowers((id) => this.supervisor?.log(id));
  /** Those of the API. */
  readonly calls = new CallsUnderWay();
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
    this.notes = new HostedNotes(options.store, options.warned);
    this.heartbeats = new Heartbeats(options.settings, {
      server: (id) => this.serverOf(id),
      ping: async (id, timeoutMs) => void (await this.request(id, { method: 'ping', timeoutMs })),
      changed: (...told) => this.supervisor?.responds(...told),
    });
  }

  /** All projects are known: from now on what is written down of them runs. */
  start(): void {
    this.leave = this.options.store.host((isHost) => this.chosen(isHost));
  }

  /** What is written down may be another. */
  refresh(): void {
    const places = this.places();
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

  places(): HostedPlace[] {
    return this.options.projects
      .list()
      .flatMap((project) => project.hosted.map((row): HostedPlace => ({ row, project })));
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
      () => this.find(id)?.row.mcp_config.path ?? '/mcp',
    );
  }

  async call(id: string, input: RequestInput, signal: AbortSignal | undefined): Promise<RpcResponse> {
    // The time counts from now on, also where the server is still to be started.
    const { timeoutMs = this.options.settings.callTimeoutMs } = input;
    try {
      return await this.calls.run(this.find(id)?.row.name ?? id, signal, (called) =>
        this.request(id, { ...input, timeoutMs }, called, true),
      );
    } catch (error) {
      if (error instanceof SwitchboardError && error.code === 'call_timeout') {
        this.supervisor?.log(id)?.add(error.message);
        this.options.warned(error.message);
      }
      throw error;
    }
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
    const { settings, projects, home, children, warned } = this.options;
    const [{ Supervisor }, { createDrivers }] = await Promise.all([
      import('../hosting/supervisor.ts'),
      import('../hosting/choose.ts'),
    ]);
    const { DOCKER_HOST, E2B_API_KEY: apiKey, E2B_DOMAIN: domain } = process.env;
    const drivers = createDrivers({
      ...settings,
      engine: settings.engine ?? (DOCKER_HOST || DEFAULT_ENGINE),
      runtimes: { gvisor: settings.runtimes.gvisor, firecracker: settings.runtimes.firecracker },
      ...{ home, children, owner: ownerOf(projects), e2b: { apiKey, domain } },
    });
    // Whoever becomes the host from now on, perhaps again, begins anew.
    this.loading = undefined;
    if (this.isClosed || !this.isHost) return;
    this.supervisor = new Supervisor(
      drivers,
      { redact: (project, text) => this.redact(project, text) },
      {
        warned,
        changed: (id, condition) => {
          this.notes.note(id, condition);
          const place = this.find(id);
          if (place !== undefined) this.options.changed(place);
        },
        running: (id) => this.running(id),
      },
    );
    this.refresh();
  }

  /** Without the secrets of its project, and without the values that its servers are started with. */
  private redact(id: string, text: string): string {
    const project = this.options.projects.lookUp(id);
    if (project === undefined) return text;
    let mask = this.masks.get(project);
    if (mask === undefined) {
      mask = new EnvironmentMask();
      this.masks.set(project, mask);
    }
    return mask.apply(project.vault.redact(text), project.hosted);
  }

  private loadFailed(error: Error): void {
    this.loading = undefined;
    this.options.warned(`Hosted servers cannot be run: ${error.message}`);
  }

  private running(id: string): void {
    this.serverOf(id)?.retry();
    this.heartbeats.begin(id);
  }

  private async request(
    id: string,
    input: RequestInput,
    signal?: AbortSignal,
    isRecorded = false,
  ): Promise<RpcResponse> {
    const server = this.serverOf(id);
    const group = server && this.find(id)?.project.servers.group(server.group);
    if (server === undefined || group === undefined) {
      const name = this.find(id)?.row.name ?? id;
      throw new SwitchboardError(
        'server_unavailable',
        `The hosted server "${name}" is stopped: start it first.`,
      );
    }
    return requestServer(server, group, input, signal, (call) => {
      if (isRecorded) this.options.recorded(finished(call, group.project));
    });
  }

  private find(id: string): HostedPlace | undefined {
    return this.places().find(({ row }) => row.id === id);
  }

  private serverOf(id: string): Server | undefined {
    const place = this.find(id);
    return place?.project.servers.get(place.row.name);
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
    const name = this.find(id)?.row.name ?? id;
    throw new SwitchboardError(
      'server_unavailable',
      this.isHost
        ? `The hosted server "${name}" is not run yet: try again.`
        : `The hosted server "${name}" is run by another Switchboard on the same database: ask that one.`,
    );
  }
}

function finished({ answer, ...call }: RequestOutcome, project: Project): FinishedCall {
  return {
    ...call,
    ...{ project, client: 'the API', isToolError: false, request: undefined },
    // What a server says of its error is not known otherwise.
    answer: call.isRpcError ? answer : undefined,
  };
}

/** The default project is made with the database, and has an id that no other database has. */
function ownerOf(projects: Projects): string {
  return projects.list().find(({ isDefault }) => isDefault)?.id ?? 'unknown';
}

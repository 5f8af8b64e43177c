import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Attachment } from '../../src/channels/hosted.ts';
import { ProcessRecord } from '../../src/channels/process-record.ts';
import { groupRuns } from '../../src/channels/process-table.ts';
import type { Provider } from '../../src/config/choices.ts';
import { SwitchboardError } from '../../src/errors.ts';
import type { Driver, Exit, Instance, InstanceEvents, InstanceSpec } from '../../src/hosting/driver.ts';
import { ProcessDriver } from '../../src/hosting/drivers/process/driver.ts';
import type { HostedServer, HostedStatus, StatusReport } from '../../src/hosting/server-state.ts';
import { Supervisor, type SupervisorSettings } from '../../src/hosting/supervisor.ts';
import { specOf } from '../hosting/contract.ts';
import { Inbox } from './inbox.ts';
import { fixtureServer } from './switchboard.ts';

/** Short delays for tests. */
export const quick = {
  restarts: { firstDelaysMs: [0, 0, 0], windowMs: 60_000, ladderMs: [20, 40, 600_000] },
  restartGraceMs: 5_000,
  stopGraceMs: 5_000,
  away: { firstMs: 10, maxMs: 20 },
};

export interface Change {
  id: string;
  report: StatusReport;
}

async function chooseFrom(drivers: readonly Driver[]): Promise<Driver> {
  const reasons = await Promise.all(drivers.map((driver) => driver.unavailable()));
  const found = drivers[reasons.indexOf(undefined)];
  if (found === undefined) throw new SwitchboardError('server_start_failed', reasons.join());
  return found;
}

export interface WatchedSettings extends Partial<SupervisorSettings> {
  /** Instances do not complete the handshake. */
  mute?: boolean;
}

export class Watched {
  readonly changes = new Inbox<Change>();
  readonly warnings = new Inbox<string>();
  readonly runs = new Inbox<string>();
  readonly supervisor: Supervisor;

  /** The first available driver is the default. */
  constructor(drivers: readonly Driver[], { mute = false, ...settings }: WatchedSettings) {
    const get = async (provider: Provider) =>
      drivers.find((driver) => driver.provider === provider) ?? drivers[0]!;
    const choose = (asked: Provider | undefined) =>
      chooseFrom(drivers.filter(({ provider }) => asked === undefined || provider === asked));
    this.supervisor = new Supervisor(
      { get, choose },
      { redact: (_project, text) => text, timing: quick, ...settings },
      {
        changed: (id, report) => this.changes.add({ id, report }),
        warned: (message) => this.warnings.add(message),
        running: (id) => {
          this.runs.add(id);
          // The probe speaks no MCP, so running instances count as initialized.
          if (!mute) this.supervisor.initialized(id);
        },
      },
    );
  }

  status(id: string): HostedStatus | undefined {
    return this.supervisor.status(id)?.status;
  }

  /** Repeated reports of one status count once. */
  statuses(id: string): HostedStatus[] {
    return this.changes.items
      .filter((change) => change.id === id)
      .map(({ report }) => report.status)
      .filter((status, index, all) => status !== all[index - 1]);
  }

  async until(id: string, fits: (report: StatusReport) => boolean): Promise<StatusReport> {
    const now = this.supervisor.status(id);
    if (now !== undefined && fits(now)) return now;
    return (await this.changes.next((change) => change.id === id && fits(change.report))).report;
  }

  async untilStatus(id: string, status: HostedStatus): Promise<StatusReport> {
    return this.until(id, (report) => report.status === status);
  }

  async speak(id: string): Promise<Speech> {
    return new Speech(await this.supervisor.attach(id));
  }
}

/** Sends commands to test/fixtures/runs-commands.ts. */
export class Speech {
  readonly ended: Promise<SwitchboardError>;
  private readonly attachment: Extract<Attachment, { kind: 'stdio' }>;

  constructor(attachment: Attachment) {
    if (attachment.kind !== 'stdio') throw new Error('It has no stdio.');
    this.attachment = attachment;
    this.ended = attachment.ended;
  }

  say(line: string): void {
    this.attachment.input.write(`${line}\n`);
  }

  /** Returns one line. */
  ask(line: string): Promise<string> {
    const { output } = this.attachment;
    return new Promise((resolve) => {
      let text = '';
      const read = (chunk: Buffer) => {
        text += chunk;
        if (!text.endsWith('\n')) return;
        output.off('data', read);
        resolve(text.trimEnd());
      };
      output.on('data', read);
      this.say(line);
    });
  }
}

/** Runs instances for a test, and checks that two of one server never run at once. */
export class Ground implements AsyncDisposable {
  readonly processes: ProcessDriver;
  readonly groups: number[] = [];
  private readonly home: string;
  private readonly record: ProcessRecord;
  private readonly watched: Watched[] = [];

  private constructor(home: string) {
    this.home = home;
    this.record = ProcessRecord.open(join(home, 'processes'), (warning) => {
      throw new Error(warning);
    });
    const { environment } = this.record;
    this.processes = new ProcessDriver({
      home,
      children: {
        environment,
        inheritsNetwork: true,
        turn: () => this.record.turn(),
        started: (pid) => {
          this.groups.push(pid);
          this.record.started(pid);
        },
        ended: (pid) => this.record.ended(pid),
      },
    });
  }

  static async make(): Promise<Ground> {
    return new Ground(await mkdtemp(join(tmpdir(), 'switchboard-test-')));
  }

  supervise(settings: WatchedSettings = {}, drivers: readonly Driver[] = [this.processes]): Watched {
    const watched = new Watched(drivers, settings);
    this.watched.push(watched);
    return watched;
  }

  get running(): number[] {
    return this.groups.filter(groupRuns);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.watched.map(({ supervisor }) => supervisor.stop()));
    this.record.killAll();
    await rm(this.home, { recursive: true, force: true });
  }
}

interface Making extends Partial<Omit<HostedServer, 'spec'>> {
  /** The first commands of the probe, read at every start. */
  does?: () => string[];
  more?: Partial<InstanceSpec>;
}

export function probe({ does = () => [], more = {}, ...rest }: Making = {}): HostedServer {
  const { command, args } = fixtureServer('runs-commands');
  const id = rest.id ?? randomUUID();
  const server: HostedServer = {
    id,
    name: `probe-${id.slice(0, 8)}`,
    project: 'test',
    provider: undefined,
    restartPolicy: 'always',
    enabled: true,
    revision: '1',
    history: { restarts: 0, lastCrash: null, crashes: [], step: 0 },
    spec: () => specOf({ id, name: server.name, command, args: [...args, ...does()], ...more }),
    ...rest,
  };
  return server;
}

interface Kept {
  spec: string;
  instance: Instance;
  /** Resolves when the engine goes away. */
  lost: PromiseWithResolvers<Exit>;
}

/** Like a Docker engine, but with processes: instances outlive their owners. Fails if two of one server run at once. */
export class EngineLikeDriver implements Driver {
  readonly provider = 'docker';
  readonly survivors = {
    adopt: (spec: InstanceSpec) => this.adopt(spec),
    reap: (ids: readonly string[]) => this.reap(ids),
  };
  readonly kept = new Map<string, Kept>();
  away: string | undefined;
  /** Starts wait for this. */
  gate: Promise<unknown> = Promise.resolve();
  starts = 0;
  aborted = 0;
  doubled = 0;
  private readonly processes: ProcessDriver;

  constructor(processes: ProcessDriver) {
    this.processes = processes;
  }

  async unavailable(): Promise<string | undefined> {
    return this.away;
  }

  /** Like an engine that stops and leaves its containers running. */
  goAway(why: string): void {
    this.away = why;
    for (const { lost } of this.kept.values())
      lost.resolve({ code: undefined, signal: undefined, reason: why, isLost: true });
  }

  async start(spec: InstanceSpec, events: InstanceEvents, signal: AbortSignal): Promise<Instance> {
    this.reach();
    this.starts++;
    const abort = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => abort.resolve());
    await Promise.race([this.gate, abort.promise]);
    if (signal.aborted) this.aborted++;
    const instance = await this.processes.start(spec, events, signal);
    if (this.kept.has(spec.id)) this.doubled++;
    return this.keep(spec, instance);
  }

  private async adopt(spec: InstanceSpec): Promise<Instance | undefined> {
    this.reach();
    const kept = this.kept.get(spec.id);
    if (kept === undefined) return undefined;
    if (kept.spec === JSON.stringify(spec)) return this.keep(spec, kept.instance);
    await this.remove(spec.id);
    return undefined;
  }

  private async reap(ids: readonly string[]): Promise<string[]> {
    this.reach();
    const others = [...this.kept.keys()].filter((id) => !ids.includes(id));
    await Promise.all(others.map((id) => this.remove(id)));
    return others;
  }

  private keep(spec: InstanceSpec, instance: Instance): Instance {
    const lost = Promise.withResolvers<Exit>();
    const { id } = spec;
    const kept = { spec: JSON.stringify(spec), instance, lost };
    this.kept.set(id, kept);
    const isKept = () => this.kept.get(id)?.instance === instance;
    void instance.exited.then(() => {
      if (isKept()) this.kept.delete(id);
    });
    return {
      ...{ id: instance.id, startedAt: instance.startedAt, stdio: instance.stdio, url: instance.url },
      exited: Promise.race([instance.exited, lost.promise]),
      stop: async (graceMs) => {
        this.reach();
        await instance.stop(graceMs);
        if (isKept()) this.kept.delete(id);
      },
      usage: () => instance.usage(),
      release: () => {},
    };
  }

  private async remove(id: string): Promise<void> {
    const kept = this.kept.get(id);
    await kept?.instance.stop(5_000);
    this.kept.delete(id);
  }

  private reach(): void {
    if (this.away !== undefined) throw new SwitchboardError('server_start_failed', this.away);
  }
}

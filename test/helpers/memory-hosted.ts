import { randomUUID } from 'node:crypto';
import type { Hosted, HostedAnswer, HostedLogListener, HostedRemoval } from '../../src/api/backend.ts';
import type { HostedCall, NewHosted } from '../../src/api/hosted-input.ts';
import type { HostedLine, HostedView } from '../../src/api/hosted-views.ts';
import type { ProjectView } from '../../src/api/views.ts';
import { mergeHosted } from '../../src/app/backend/merge-hosted.ts';
import { SwitchboardError } from '../../src/errors.ts';
import { hostedView } from './hosted-view.ts';
import { Inbox } from './inbox.ts';

interface Server {
  id: string;
  input: NewHosted;
  version: number;
  restarts: number;
}

/** Hosted servers that are kept in memory, and never run. */
export class MemoryHosted implements Hosted {
  readonly all = new Map<string, Server>();
  readonly calls = new Inbox<HostedCall & { signal: AbortSignal }>();
  /** What is answered to calls. */
  answer: () => Promise<HostedAnswer> = async () => ({ resultText: '{}' });
  /** Of the last one that was removed. */
  deletedVolumes: boolean | undefined;
  readonly lines: HostedLine[] = [];
  readonly listeners = new Map<HostedLogListener, string>();
  private readonly projectOf: (project: string) => ProjectView;

  constructor(projectOf: (project: string) => ProjectView) {
    this.projectOf = projectOf;
  }

  async list(project: string | undefined): Promise<HostedView[]> {
    const { id } = project === undefined ? {} : this.projectOf(project);
    const views = [...this.all.values()].map((server) => this.view(server));
    return views.filter(({ project_id }) => id === undefined || project_id === id);
  }

  async get(id: string): Promise<HostedView> {
    const usage = { cpu_percent: 1.5, memory_bytes: 1024, memory_limit_bytes: 2048, disk_bytes: null };
    return { ...this.view(this.find(id)), usage };
  }

  async create(input: NewHosted): Promise<HostedView> {
    const { id: projectId } = this.projectOf(input.project);
    const inside = await this.list(projectId);
    if (inside.some(({ name }) => name === input.name)) {
      throw new SwitchboardError('conflict', `There is a server "${input.name}" already.`);
    }
    const server = { id: randomUUID(), input, version: 1, restarts: 0 };
    this.all.set(server.id, server);
    return this.view(server);
  }

  async change(
    id: string,
    changes: Parameters<Hosted['change']>[1],
    ifVersion: number | undefined,
  ): Promise<HostedView> {
    const server = this.find(id, ifVersion);
    server.input = { ...server.input, ...mergeHosted(server.input, changes) };
    server.version++;
    return this.view(server);
  }

  async remove(id: string, { deleteVolumes }: HostedRemoval, ifVersion: number | undefined): Promise<void> {
    const server = this.find(id, ifVersion);
    this.deletedVolumes = deleteVolumes;
    this.all.delete(server.id);
    for (const [listener, followed] of this.listeners) if (followed === server.id) listener.removed();
  }

  async call(id: string, call: HostedCall, signal: AbortSignal): Promise<HostedAnswer> {
    this.find(id);
    this.calls.add({ ...call, signal });
    return this.answer();
  }

  async restart(id: string): Promise<HostedView> {
    const server = this.find(id);
    server.restarts++;
    return this.view(server);
  }

  async log(id: string): Promise<readonly HostedLine[]> {
    this.find(id);
    return this.lines;
  }

  followLog(id: string, listener: HostedLogListener) {
    this.listeners.set(listener, this.find(id).id);
    return { lines: [...this.lines], stop: () => void this.listeners.delete(listener) };
  }

  /** The server writes a line. */
  say(line: string): void {
    const said = { at: new Date().toISOString(), line };
    this.lines.push(said);
    for (const listener of this.listeners.keys()) listener.line(said);
  }

  private find(id: string, ifVersion?: number): Server {
    const named = [...this.all.values()].filter(({ input }) => input.name === id);
    const server = this.all.get(id) ?? (named.length === 1 ? named[0] : undefined);
    if (server === undefined) throw new SwitchboardError('not_found', `There is no hosted server "${id}".`);
    if (ifVersion !== undefined && ifVersion !== server.version) {
      throw new SwitchboardError('version_conflict', `It is version ${server.version} by now.`);
    }
    return server;
  }

  private view({ id, input, version, restarts }: Server): HostedView {
    const { name, enabled, resource_limits, config } = input;
    const { environment, provider, ...settings } = config;
    const { id: project_id, name: project } = this.projectOf(input.project);
    return hostedView({
      ...{ id, name, project, project_id, enabled, resource_limits, version },
      ...settings,
      environment: Object.keys(environment),
      requested_provider: provider,
      provider,
      restart_count: restarts,
      status: enabled ? 'ready' : 'stopped',
      container_status: enabled ? 'running' : 'stopped',
    });
  }
}

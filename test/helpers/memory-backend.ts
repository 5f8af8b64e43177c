import { randomUUID } from 'node:crypto';
import type { Backend, ProjectListener } from '../../src/api/backend.ts';
import type { NewChat } from '../../src/api/chat-input.ts';
import type { ChatView, RunView } from '../../src/api/chat-views.ts';
import type { CallFilter, NewProduct } from '../../src/api/inputs.ts';
import type { NewServer } from '../../src/api/server-input.ts';
import type { ProductView, ProjectView, SecretView, ServerView } from '../../src/api/views.ts';
import { mergeServer } from '../../src/app/backend/merge-server.ts';
import { SwitchboardError } from '../../src/errors.ts';
import { Inbox } from './inbox.ts';
import { MemoryHosted } from './memory-hosted.ts';
import { noon, serverView } from './server-view.ts';

interface Project {
  view: ProjectView;
  servers: Map<string, { input: NewServer; version: number }>;
  secrets: Map<string, SecretView>;
  products: Map<string, { view: ProductView; manifest: NewProduct['manifest'] }>;
}

const time = noon.toISOString();

/** Everything that the API needs, kept in memory. */
export class MemoryBackend implements Backend {
  readonly all = new Map<string, Project>();
  readonly listeners = new Map<ProjectListener, string>();
  /** Who stopped listening. */
  readonly left = new Inbox<string>();
  readonly filters: CallFilter[] = [];
  readonly imported: string[] = [];
  readonly chatted: NewChat[] = [];
  /** Thrown by status(), and by chats. */
  fault: unknown;

  constructor() {
    this.add('default');
  }

  projects: Backend['projects'] = {
    list: async () => [...this.all.values()].map(({ view }) => view),
    get: async (project) => this.find(project).view,
    create: async ({ name, ...rest }) => {
      if ([...this.all.values()].some(({ view }) => view.name === name)) throw taken(name);
      return Object.assign(this.add(name).view, rest);
    },
    change: async (project, changes, ifVersion) => {
      const { view } = this.find(project);
      expectVersion(view.version, ifVersion);
      return Object.assign(view, changes, { version: view.version + 1 });
    },
    remove: async (project, ifVersion) => {
      const { view } = this.find(project);
      expectVersion(view.version, ifVersion);
      if (view.name === 'default') throw new SwitchboardError('read_only', 'It is always there.');
      this.all.delete(view.id);
      for (const [listener, id] of this.listeners) if (id === view.id) listener.projectRemoved();
    },
  };

  servers: Backend['servers'] = {
    list: async (project) => [...this.find(project).servers.keys()].map((name) => this.view(project, name)),
    get: async (project, name) => this.view(project, name),
    create: async (project, input) => {
      const { servers } = this.find(project);
      if (servers.has(input.name)) throw taken(input.name);
      servers.set(input.name, { input, version: 1 });
      return this.view(project, input.name);
    },
    change: async (project, name, changes, ifVersion) => {
      const { servers } = this.find(project);
      const server = this.server(project, name);
      expectVersion(server.version, ifVersion);
      const input = mergeServer(server.input, changes);
      servers.delete(name);
      servers.set(input.name, { input, version: server.version + 1 });
      return this.view(project, input.name);
    },
    remove: async (project, name, ifVersion) => {
      expectVersion(this.server(project, name).version, ifVersion);
      this.find(project).servers.delete(name);
    },
    test: async (project, name) => {
      this.server(project, name);
      const counts = { tools: 3, resources: 2, prompts: 1 };
      return { ok: true, duration_ms: 1.5, error: null, ...counts, server_info: { name, version: '1' } };
    },
    log: async (project, name) => [`${this.server(project, name).input.name} says hello`],
  };

  tools: Backend['tools'] = {
    list: async (project) => [toolView(this.find(project).view.name)],
    switch: async (project, tool, enabled) => {
      this.find(project);
      return { ...toolView(tool), enabled };
    },
  };

  secrets: Backend['secrets'] = {
    list: async (project) => [...this.find(project).secrets.values()],
    put: async (project, name) => {
      const { secrets } = this.find(project);
      const isNew = !secrets.has(name);
      const view = { name, created_at: time, updated_at: time, used_by: [] };
      secrets.set(name, view);
      return { isNew, view };
    },
    remove: async (project, name) => {
      if (!this.find(project).secrets.delete(name)) throw unknown('secret', name);
    },
    rotate: async () => ({ rotated: 0, key_id: 'one' }),
  };

  products: Backend['products'] = {
    list: async (project) => [...this.find(project).products.values()].map(({ view }) => view),
    install: async (project, { name, version, manifest, servers }) => {
      const { products, servers: own } = this.find(project);
      const isNew = !products.has(name);
      const names = servers.map((server) => server.name);
      const view = { id: randomUUID(), name, version, servers: names, created_at: time, updated_at: time };
      products.set(name, { view, manifest });
      for (const input of servers) own.set(input.name, { input, version: 1 });
      return { isNew, view: { product: view, added: names, changed: [], removed: [], unchanged: [] } };
    },
    remove: async (project, name) => {
      if (!this.find(project).products.delete(name)) throw unknown('product', name);
    },
  };

  calls: Backend['calls'] = {
    list: async (project, filter) => {
      this.find(project);
      this.filters.push(filter);
      return { calls: [], next_cursor: null, dropped: 0 };
    },
  };

  imports: Backend['imports'] = {
    import: async (project, text, replace) => {
      this.find(project);
      this.imported.push(text);
      return { imported: ['github'], notes: replace ? ['replaced'] : [] };
    },
  };

  hosted = new MemoryHosted((project) => this.find(project).view);

  chats: Backend['chats'] = {
    beginRun: async (project) => {
      this.find(project);
      return { id: randomUUID() };
    },
    recordCalls: async (project) => void this.find(project),
    changeRun: async (project) => void this.find(project),
    begin: async (project, chat) => {
      this.find(project);
      this.chatted.push(chat);
      const id = randomUUID();
      const answer = chatView(id);
      return {
        id,
        finish: async (listener) => {
          listener({ type: 'text', data: { step: 1, text: answer.text } });
          if (this.fault !== undefined) throw this.fault;
          return answer;
        },
      };
    },
    runs: async (project) => {
      this.find(project);
      return { runs: [runView()], next_cursor: null };
    },
    run: async (project, id) => {
      this.find(project);
      if (id !== runView().id) throw unknown('run', id);
      return { ...runView(), messages: [], tool_calls: [] };
    },
  };

  async status() {
    if (this.fault !== undefined) throw this.fault;
    const database = { mode: 'none' as const, connected: false, error: null };
    return {
      version: '1.2.3',
      config: '/mcp.json',
      database,
      records: { queued: 0, dropped: 0 },
      sessions: 0,
    };
  }

  subscribe(project: string, listener: ProjectListener): () => void {
    this.listeners.set(listener, this.find(project).view.id);
    return () => {
      this.listeners.delete(listener);
      this.left.add(project);
    };
  }

  /** A server of a project went from ready to failed. */
  fail(project: string, name: string, error: string | null = null): void {
    const server = { ...this.view(project, name), state: 'failed' as const, error };
    for (const [listener, id] of this.listeners) {
      if (id === this.find(project).view.id)
        listener.serverChanged({ time, server, replica: null, from: 'ready' });
    }
  }

  private add(name: string): Project {
    const view: ProjectView = {
      id: randomUUID(),
      name,
      description: null,
      record_payloads: false,
      retention_days: 30,
      names: 'model-safe',
      version: 1,
      server_count: 0,
      created_at: time,
      updated_at: time,
    };
    const project = { view, servers: new Map(), secrets: new Map(), products: new Map() };
    this.all.set(view.id, project);
    return project;
  }

  private find(project: string): Project {
    const found = this.all.get(project) ?? [...this.all.values()].find(({ view }) => view.name === project);
    if (found !== undefined) return found;
    throw new SwitchboardError('unknown_project', `There is no project "${project}".`);
  }

  private server(project: string, name: string): { input: NewServer; version: number } {
    const found = this.find(project).servers.get(name);
    if (found === undefined) throw unknown('server', name);
    return found;
  }

  private view(project: string, name: string): ServerView {
    const { version, input } = this.server(project, name);
    const { settings, ...rest } = input;
    const { replicas = 1, group = null, prefix = null, labels = {} } = settings;
    return serverView({
      ...rest,
      group,
      prefix,
      labels,
      replica_count: replicas,
      source: 'api',
      project: this.find(project).view.name,
      version,
    });
  }
}

const usage = { input_tokens: 1, output_tokens: 2, cache_read_tokens: 0, cache_write_tokens: 0 };

function chatView(run_id: string): ChatView {
  const message = { role: 'assistant' as const, content: [{ type: 'text' as const, text: 'Hello.' }] };
  const end = { text: 'Hello.', stop_reason: 'end' as const, steps: 1, usage };
  return { run_id, ...end, messages: [message], tool_calls: [] };
}

function runView(): RunView {
  return {
    ...{
      id: '7f5c3f57-0c5e-4b0e-9d6a-0d2f3a1b4c5d',
      agent: null,
      status: 'completed',
      model: 'claude',
      system: null,
    },
    ...{ tools: null, input: 'Hi!', output: 'Hello.', stop_reason: 'end', steps: 1, usage, error: null },
    ...{ started_at: time, finished_at: time },
  };
}

function toolView(name: string) {
  const texts = { title: null, description: null, group: null, server: 'github', tool: name };
  return { name, qualified_name: `github__${name}`, ...texts, enabled: true, input_schema: {} };
}

function expectVersion(version: number, expected: number | undefined): void {
  if (expected === undefined || expected === version) return;
  throw new SwitchboardError('version_conflict', `It is version ${version} by now.`, { data: { version } });
}

function taken(name: string): SwitchboardError {
  return new SwitchboardError('conflict', `"${name}" is there already.`);
}

function unknown(what: string, name: string): SwitchboardError {
  return new SwitchboardError('not_found', `There is no ${what} "${name}".`);
}

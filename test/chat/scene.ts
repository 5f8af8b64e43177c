import { randomUUID } from 'node:crypto';
import type { ChatView, RunDetails } from '../../src/api/chat-views.ts';
import {
  API_KEY,
  type ApiRequest,
  type MessagesApi,
  type Script,
  startMessagesApi,
} from '../agent/messages-api.ts';
import { EventStream, openExchange } from '../helpers/raw-http.ts';
import { Site, type TestProject } from '../projects/site.ts';

/** A running Switchboard whose chats use a stand-in for the model's API. */
export class ChatSite implements AsyncDisposable {
  readonly site: Site;
  readonly api: MessagesApi;
  /** By model name: each conversation has its own. */
  private readonly scripts: Map<string, Script>;

  private constructor(site: Site, api: MessagesApi, scripts: Map<string, Script>) {
    this.site = site;
    this.api = api;
    this.scripts = scripts;
  }

  /** `url`: of a database to use instead of a new one. */
  static async start(url?: string): Promise<ChatSite> {
    const scripts = new Map<string, Script>();
    const counts = new Map<string, number>();
    const api = await startMessagesApi((request) => {
      const { model } = request.body;
      const index = counts.get(model) ?? 0;
      counts.set(model, index + 1);
      const script = scripts.get(model) ?? [];
      const reply = typeof script === 'function' ? script(request, index) : script[index];
      return reply ?? failure(`There is no reply ${index + 1} of ${model}.`);
    });
    const config = { mcpServers: {}, switchboard: { chat: { baseUrl: api.url } } };
    const site = await Site.start('server', config, url === undefined ? {} : { url });
    return new ChatSite(site, api, scripts);
  }

  /** A project with the key of the model's API, and a server of the fixture toolbox. */
  async project(script: Script): Promise<Talk> {
    const project = await this.site.project();
    await project.done('PUT /secrets/ANTHROPIC_API_KEY', { value: API_KEY });
    await project.add('box');
    return this.talk(project, script);
  }

  /** A scripted model for a project. */
  talk(project: TestProject, script: Script): Talk {
    const model = `claude-${randomUUID().slice(0, 8)}`;
    this.scripts.set(model, script);
    return new Talk(this, project, model);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site[Symbol.asyncDispose]();
    await this.api[Symbol.asyncDispose]();
  }
}

export class Talk {
  readonly project: TestProject;
  readonly model: string;
  private readonly scene: ChatSite;

  constructor(scene: ChatSite, project: TestProject, model: string) {
    this.scene = scene;
    this.project = project;
    this.model = model;
  }

  /** The requests to the model's API so far. */
  get requests(): ApiRequest[] {
    return this.scene.api.requests.items.filter(({ body }) => body.model === this.model);
  }

  asked(count: number): Promise<ApiRequest[]> {
    return this.scene.api.requests.several(count, ({ body }) => body.model === this.model);
  }

  chat(input: string, more: object = {}): Promise<ChatView> {
    return this.project.done<ChatView>('POST /chat', { model: this.model, input, ...more });
  }

  refused(input: string, more: object = {}) {
    return this.project.ask('POST /chat', { model: this.model, input, ...more });
  }

  async stream(input: string, more: object = {}): Promise<EventStream> {
    const url = `${this.scene.site.baseUrl}/api/v1/projects/${this.project.name}/chat`;
    const body = { model: this.model, input, stream: true, ...more };
    const headers = { 'content-type': 'application/json' };
    return new EventStream(await openExchange(url, { headers, body }));
  }

  run(id: string): Promise<RunDetails> {
    return this.project.done<RunDetails>(`GET /runs/${id}`);
  }

  /** Settles when a run is over. There is no event for it, so this polls. */
  async over(id: string): Promise<RunDetails> {
    for (;;) {
      const run = await this.run(id);
      if (run.status !== 'running') return run;
    }
  }
}

export async function eventOf(stream: EventStream, type: string): Promise<Record<string, unknown>> {
  const { data = '{}' } = await stream.events.first(({ event }) => event === type);
  return JSON.parse(data) as Record<string, unknown>;
}

function failure(message: string) {
  return { status: 400, error: { type: 'invalid_request_error', message } };
}

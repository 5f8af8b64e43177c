import { ChatError } from '../agent/chat-error.ts';
import type { AgentEvent, ChatResult } from '../agent/events.ts';
import { type AgentMessage, noUsage } from '../agent/model.ts';
import { onceEach } from '../agent/toolbox.ts';
import { unlessAborted } from '../channels/timing.ts';
import type { ChatSettings } from '../config.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { credentialEnded, type Principal, type Sender } from '../identity/principal.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { Store } from '../store/store.ts';
import { type Guards, ProjectToolbox } from './project-toolbox.ts';
import { RunRecord } from './run-record.ts';

const TOUCH_MS = 20_000;

/** How often runs of killed processes are marked as failed. */
const FAIL_LOST_MS = 60_000;

export interface NewChat {
  messages: readonly AgentMessage[];
  model: string | undefined;
  system: string | undefined;
  tools: readonly string[] | undefined;
  maxSteps: number | undefined;
  maxTokens: number | undefined;
  apiKeySecret: string;
}

export interface ChatRun {
  id: string;
  /** Call once. The result has only the new messages. `signal` aborts when the client disconnects, which cancels the chat. */
  finish(onEvent: (event: AgentEvent) => void, signal: AbortSignal): Promise<ChatResult>;
}

/** A chat failed. The messages continue the conversation up to the failure. */
export class ChatFailure extends SwitchboardError {
  readonly messages: readonly AgentMessage[];

  constructor(thrown: unknown, message: string, messages: readonly AgentMessage[]) {
    const { code, data } = asSwitchboardError(thrown);
    super(code, message, { cause: thrown, data });
    this.messages = messages;
  }
}

interface ActiveChat {
  project: LiveProject;
  principal: Principal;
  abort: AbortController;
  over: Promise<unknown>;
}

interface Work {
  project: LiveProject;
  sender: Sender;
  guards: Guards;
  chat: NewChat & { model: string };
  apiKey: string;
  record: RunRecord;
  onEvent: (event: AgentEvent) => void;
}

export class Chats {
  private readonly settings: ChatSettings;
  private readonly store: Store;
  private readonly warn: (message: string) => void;
  /** Passes each warning on once, because every chat of a project would repeat it. */
  private readonly warnings = new WeakMap<LiveProject, (message: string) => void>();
  private readonly active = new Map<string, ActiveChat>();
  private touching: NodeJS.Timeout | undefined;
  private readonly failingLost: NodeJS.Timeout;
  private isClosed = false;

  constructor(settings: ChatSettings, store: Store, warn: (message: string) => void) {
    this.settings = settings;
    this.store = store;
    this.warn = warn;
    // The store itself reports an outage.
    const failLost = () => void store.runs.failLost().catch(() => {});
    failLost();
    this.failingLost = setInterval(failLost, FAIL_LOST_MS).unref();
  }

  get count(): number {
    return this.active.size;
  }

  /** Rejects if the chat cannot begin. Its tools are those that the sender may call. */
  async begin(project: LiveProject, sender: Sender, guards: Guards, chat: NewChat): Promise<ChatRun> {
    const { principal } = sender;
    const apiKey = apiKeyOf(project, chat.apiKeySecret);
    const { model = this.settings.model, system = null, tools = null, messages } = chat;
    const record = new RunRecord({
      store: this.store,
      projectId: project.id,
      principal,
      redact: (text) => project.vault.redact(text),
      warned: this.warn,
    });
    await record.begin({ model, system, tools }, messages);
    return {
      id: record.id,
      finish: (onEvent, signal) => {
        const abort = new AbortController();
        const work = { project, sender, guards, chat: { ...chat, model }, apiKey, record, onEvent };
        const over = this.run(work, abort, signal);
        this.enter(record.id, { project, principal, abort, over: over.catch(() => {}) });
        return over;
      },
    };
  }

  endOf(project: LiveProject): void {
    const removed = new SwitchboardError('unknown_project', `The project "${project.name}" was deleted.`);
    for (const chat of this.active.values()) {
      if (chat.project === project) chat.abort.abort(removed);
    }
  }

  /** Of one that was revoked, removed or has expired. */
  endOfPrincipal(principal: Principal): void {
    for (const chat of this.active.values())
      if (chat.principal === principal) chat.abort.abort(credentialEnded());
  }

  /** Ends the chats that the principal may no longer have. */
  permissionsChanged(principal: Principal): void {
    for (const chat of this.active.values())
      if (chat.principal === principal && !mayChat(chat)) chat.abort.abort(forbidden(chat.project));
  }

  /** Cancels all chats, and resolves when that is persisted. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.failingLost);
    const active = [...this.active.values()];
    for (const { abort } of active) abort.abort(stopped());
    await Promise.all(active.map(({ over }) => over));
  }

  private enter(id: string, chat: ActiveChat): void {
    this.active.set(id, chat);
    if (this.isClosed) chat.abort.abort(stopped());
    // It may have changed while the chat began.
    if (chat.principal.isEnded) chat.abort.abort(credentialEnded());
    else if (!mayChat(chat)) chat.abort.abort(forbidden(chat.project));
    this.touching ??= setInterval(() => {
      // The store itself reports an outage.
      this.store.runs.touch([...this.active.keys()]).catch(() => {});
    }, TOUCH_MS).unref();
    void chat.over.then(() => {
      this.active.delete(id);
      if (this.active.size > 0) return;
      clearInterval(this.touching);
      this.touching = undefined;
    });
  }

  private async run(work: Work, abort: AbortController, client: AbortSignal): Promise<ChatResult> {
    const { project, sender, guards, record, chat } = work;
    const cancel = () => abort.abort(new SwitchboardError('client_unavailable', 'The client disconnected.'));
    client.addEventListener('abort', cancel);
    if (client.aborted) cancel();
    const toolbox = new ProjectToolbox(project, sender, guards, (call) => record.call(call));
    try {
      const result = await this.converse(work, toolbox, abort.signal);
      const { text: output, stopReason, steps, usage, messages } = result;
      await record.end({ status: 'completed', output, stopReason, steps, usage, error: null });
      return { ...result, messages: messages.slice(chat.messages.length) };
    } catch (thrown) {
      const error = this.failure(thrown, work);
      const { steps, usage } = thrown instanceof ChatError ? thrown : { steps: 0, usage: noUsage };
      const status = abort.signal.aborted ? 'cancelled' : 'failed';
      await record.end({ status, output: null, stopReason: null, steps, usage, error });
      throw error;
    } finally {
      client.removeEventListener('abort', cancel);
      await toolbox.stop();
    }
  }

  /** Loads the agent modules with the first chat, because most processes have none. */
  private async converse(
    { project, chat, apiKey, record, onEvent }: Work,
    toolbox: ProjectToolbox,
    signal: AbortSignal,
  ): Promise<ChatResult> {
    const [{ runLoop }, { ClaudeModel }, { allowedBy }] = await Promise.all([
      import('../agent/loop.ts'),
      import('../agent/claude.ts'),
      import('../config/tool-patterns.ts'),
    ]);
    await unlessAborted(toolbox.start(), signal);
    const { model, maxTokens, messages, system, maxSteps, tools } = chat;
    return runLoop({
      model: new ClaudeModel({ model, apiKey, baseUrl: this.settings.baseUrl, maxTokens }),
      ...{ toolbox, messages, system, maxSteps, signal },
      allows: tools === undefined ? undefined : allowedBy(tools),
      onWarning: this.warningOf(project),
      onEvent(event) {
        if (event.type === 'message') record.message(event.message, event.step);
        if (event.type === 'tool_end' && event.call.server === undefined) {
          toolbox.missed(event.call.name);
          record.unknownTool(event.call);
        }
        onEvent(event);
      },
    });
  }

  private warningOf(project: LiveProject): (message: string) => void {
    const known = this.warnings.get(project);
    if (known !== undefined) return known;
    const { name, vault } = project;
    const warnOnce = onceEach((message) => this.warn(vault.redact(`Chats of project "${name}": ${message}`)));
    this.warnings.set(project, warnOnce);
    return warnOnce;
  }

  private failure(thrown: unknown, { project, chat }: Work): ChatFailure {
    const isOfChat = thrown instanceof ChatError;
    const cause = isOfChat ? thrown.cause : thrown;
    if (!(cause instanceof SwitchboardError)) {
      this.warn(`internal error: ${(cause as Error)?.stack ?? cause}`);
    }
    const messages = isOfChat ? thrown.messages.slice(chat.messages.length) : [];
    return new ChatFailure(thrown, project.vault.redact(asSwitchboardError(thrown).message), messages);
  }
}

function apiKeyOf(project: LiveProject, secret: string): string {
  const key = project.vault.value(secret);
  if (key !== undefined) return key;
  throw new SwitchboardError(
    'missing_secret',
    `Project "${project.name}" has no secret ${secret} with the API key of the model: set it with \`switchboard secret set ${secret} --project ${project.name}\`, or name another secret in api_key_secret.`,
    { data: { secret, project: project.name } },
  );
}

function mayChat({ principal, project }: ActiveChat): boolean {
  return principal.permissions.may('chat', project.id);
}

function forbidden({ name }: LiveProject): SwitchboardError {
  return new SwitchboardError('forbidden', `Chats in project "${name}" are not allowed any more.`);
}

function stopped(): SwitchboardError {
  return new SwitchboardError('server_unavailable', 'Switchboard was stopped.');
}

import { ChatError } from '../agent/chat-error.ts';
import type { AgentMessage } from '../agent/model.ts';
import { onceEach } from '../agent/once-each.ts';
import type { NewChat } from '../api/chat-input.ts';
import type { ChatEvent, ChatView } from '../api/chat-views.ts';
import type { ChatSettings } from '../config.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { Store } from '../store/store.ts';
import { agentMessages, chatEvent, chatViewOf, messageView, usageView } from './chat-views.ts';
import { ProjectToolbox } from './project-toolbox.ts';
import { RunRecord } from './run-record.ts';

/** How often it is written down that those under way are still under way. */
const SEEN_MS = 20_000;

/** How often those are looked for whose process was killed: this one's before, or another's on the same database. */
const GIVE_UP_MS = 60_000;

interface ActiveChat {
  project: LiveProject;
  abort: AbortController;
  /** Settles when all of it is written down. */
  over: Promise<unknown>;
}

/** The chats under way: a model, the tools of a project, and a record of all that they did. */
export class Chats {
  private readonly settings: ChatSettings;
  private readonly store: Store;
  private readonly warned: (message: string) => void;
  /** Each chat has the same to say of the tools of its project. */
  private readonly warnings = new WeakMap<LiveProject, (message: string) => void>();
  private readonly active = new Map<string, ActiveChat>();
  private timer: NodeJS.Timeout | undefined;
  private readonly givingUp: NodeJS.Timeout;
  private isClosed = false;

  constructor(settings: ChatSettings, store: Store, warned: (message: string) => void) {
    this.settings = settings;
    this.store = store;
    this.warned = warned;
    // Where the database is away, that has been told already.
    const giveUp = () => void store.runs.failLost().catch(() => {});
    giveUp();
    this.givingUp = setInterval(giveUp, GIVE_UP_MS).unref();
  }

  get count(): number {
    return this.active.size;
  }

  /** Fails where it cannot be begun. What is begun is a run from then on. */
  async begin(project: LiveProject, chat: NewChat) {
    const apiKey = keyOf(project, chat.apiKeySecret);
    const { model = this.settings.model, system = null, tools = null } = chat;
    const messages = agentMessages(chat.messages);
    const record = new RunRecord({
      store: this.store,
      projectId: project.id,
      redact: (text) => project.vault.redact(text),
      warned: this.warned,
    });
    await record.begin({ model, system, tools }, messages);
    return {
      id: record.id,
      finish: (listener: (event: ChatEvent) => void, signal: AbortSignal): Promise<ChatView> => {
        const abort = new AbortController();
        const work = { project, chat: { ...chat, model }, apiKey, messages, record, listener };
        const over = this.run(work, abort, signal);
        this.enter(record.id, { project, abort, over: over.catch(() => {}) });
        return over;
      },
    };
  }

  /** The project is gone, and its tools with it. */
  endOf(project: LiveProject): void {
    for (const chat of this.active.values()) {
      if (chat.project === project) chat.abort.abort(gone(project));
    }
  }

  /** Ends all of them, and settles when that is written down. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.givingUp);
    const active = [...this.active.values()];
    for (const { abort } of active) abort.abort(stopped());
    await Promise.all(active.map(({ over }) => over));
  }

  private enter(id: string, chat: ActiveChat): void {
    this.active.set(id, chat);
    if (this.isClosed) chat.abort.abort(stopped());
    this.timer ??= setInterval(() => {
      // Where the database is away, that has been told already.
      this.store.runs.touch([...this.active.keys()]).catch(() => {});
    }, SEEN_MS).unref();
    void chat.over.then(() => {
      this.active.delete(id);
      if (this.active.size > 0) return;
      clearInterval(this.timer);
      this.timer = undefined;
    });
  }

  private async run(work: Work, abort: AbortController, client: AbortSignal): Promise<ChatView> {
    const { project, record } = work;
    const leave = () => abort.abort(cancelled());
    client.addEventListener('abort', leave);
    if (client.aborted) leave();
    const toolbox = new ProjectToolbox(project, (call) => record.call(call));
    const progress: Progress = { steps: 0, usage: { ...noUsage } };
    try {
      const result = await this.converse(work, toolbox, progress, abort.signal);
      const { text: output, stopReason, steps, usage } = result;
      const end = { output, stopReason, steps, usage: usageView(usage), error: null };
      await record.end({ ...end, status: 'completed' });
      return chatViewOf(record.id, result, work.messages.length);
    } catch (thrown) {
      const error = this.failure(thrown, work);
      const status = abort.signal.aborted ? 'cancelled' : 'failed';
      const { code, message } = error;
      const unfinished = { output: null, stopReason: null, error: { code, message } };
      await record.end({ ...unfinished, status, steps: progress.steps, usage: usageView(progress.usage) });
      throw error;
    } finally {
      client.removeEventListener('abort', leave);
      await toolbox.stop();
    }
  }

  /** The parts of it are loaded with the first chat: a gateway that is only called needs none of them. */
  private async converse(
    { project, chat, apiKey, messages, record, listener }: Work,
    toolbox: ProjectToolbox,
    progress: Progress,
    signal: AbortSignal,
  ) {
    const [{ runLoop }, { ClaudeModel }, { allowedBy }, { unlessAborted }] = await Promise.all([
      import('../agent/loop.ts'),
      import('../agent/claude.ts'),
      import('../config/tool-patterns.ts'),
      import('../agent/unless-aborted.ts'),
    ]);
    await unlessAborted(toolbox.start(), signal);
    const { model, maxTokens, system, maxSteps, tools } = chat;
    return runLoop({
      model: new ClaudeModel({ model, apiKey, baseUrl: this.settings.baseUrl, maxTokens }),
      ...{ toolbox, messages, system, maxSteps, signal },
      allows: tools === undefined ? undefined : allowedBy(tools),
      onWarning: this.warningOf(project),
      onEvent(event) {
        if (event.type === 'message') record.message(event.message, event.step);
        if (event.type === 'tool_end' && event.call.server === undefined) record.unknownTool(event.call);
        if (event.type === 'step') {
          progress.steps = event.step;
          for (const key of Object.keys(noUsage) as (keyof Usage)[]) progress.usage[key] += event.usage[key];
        }
        const told = chatEvent(event);
        if (told !== undefined) listener(told);
      },
    });
  }

  private warningOf(project: LiveProject): (message: string) => void {
    const known = this.warnings.get(project);
    const { name, vault } = project;
    const tell =
      known ?? onceEach((message) => this.warned(vault.redact(`Chats of project "${name}": ${message}`)));
    this.warnings.set(project, tell);
    return tell;
  }

  /** What whoever asked is told. It names the run, which can be looked into, and has what the conversation can be gone on with. */
  private failure(thrown: unknown, { project, record, messages: known }: Work): SwitchboardError {
    const isOfChat = thrown instanceof ChatError;
    const cause = isOfChat ? thrown.cause : thrown;
    if (!(cause instanceof SwitchboardError)) {
      this.warned(`internal error: ${(cause as Error)?.stack ?? cause}`);
    }
    const { code, message, data } = asSwitchboardError(thrown);
    const messages = isOfChat ? thrown.messages.slice(known.length).map(messageView) : [];
    return new SwitchboardError(code, project.vault.redact(message), {
      cause: thrown,
      data: { ...data, run_id: record.id, messages },
    });
  }
}

type Usage = Parameters<typeof usageView>[0];

interface Work {
  project: LiveProject;
  chat: NewChat & { model: string };
  apiKey: string;
  messages: readonly AgentMessage[];
  record: RunRecord;
  listener: (event: ChatEvent) => void;
}

/** How far it got. */
interface Progress {
  steps: number;
  usage: Usage;
}

const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

function keyOf(project: LiveProject, secret: string): string {
  const key = project.vault.value(secret);
  if (key !== undefined) return key;
  throw new SwitchboardError(
    'missing_secret',
    `Project "${project.name}" has no secret ${secret}, and the API of the model needs a key: set it with \`switchboard secret set ${secret} --project ${project.name}\`, or name another one in api_key_secret.`,
    { data: { secret, project: project.name } },
  );
}

function cancelled(): SwitchboardError {
  return new SwitchboardError('client_unavailable', 'Whoever asked has gone.');
}

function stopped(): SwitchboardError {
  return new SwitchboardError('server_unavailable', 'Switchboard was stopped.');
}

function gone({ name }: LiveProject): SwitchboardError {
  return new SwitchboardError('unknown_project', `The project "${name}" was deleted.`);
}

import { unlessAborted } from '../channels/timing.ts';
import type { ServerEntry } from '../config/entry.ts';
import { allowedBy } from '../config/tool-patterns.ts';
import { SwitchboardError } from '../errors.ts';
import { Chat } from './chat.ts';
import { type ChatError, chatError } from './chat-error.ts';
import { type ClaudeClient, ClaudeModel } from './claude.ts';
import { CombinedTools, NATIVE_SERVER } from './combined-tools.ts';
import { type AgentEvent, type ChatResult, EventQueue } from './events.ts';
import { LocalToolbox, type LocalToolboxOptions, projectOf } from './local-toolbox.ts';
import { runLoop } from './loop.ts';
import { type AgentMessage, type Model, textOf } from './model.ts';
import type { NativeTool } from './native-tools.ts';
import { ProjectRuns } from './project-runs.ts';
import { type AgentTool, onceEach, type Toolbox } from './toolbox.ts';

const DEFAULT_NAME = 'switchboard';

export interface AiAgentOptions {
  /** MCP servers of this agent. Same format as `mcpServers` in a configuration file. */
  servers?: Record<string, ServerEntry> | undefined;
  /** Its name towards servers and in call records; `switchboard` by default. */
  name?: string | undefined;
  /** A project of a running Switchboard, instead of `servers`: `http://127.0.0.1:7400/mcp/<project>`. */
  url?: string | undefined;
  /** Tools that run in this process. */
  nativeTools?: readonly NativeTool[] | undefined;
  /** The name of a Claude model, or any other model. */
  model: string | Model;
  system?: string | undefined;
  /** The maximum length of a response. Only if `model` is a name. */
  maxTokens?: number | undefined;
  /** The maximum number of turns of the model in a chat. */
  maxSteps?: number | undefined;
  /** The names of the tools that it may use, with `*` as a wildcard; all by default. */
  tools?: readonly string[] | undefined;
  /** Only if `model` is a name. By default the SDK finds it. */
  apiKey?: string | undefined;
  /** Only if `model` is a name. */
  baseUrl?: string | undefined;
  /** Only if `model` is a name: a client of Anthropic's SDK, or one with the same `messages`, as for Bedrock or Vertex. */
  client?: ClaudeClient | undefined;
  /** Longer tool results are truncated. */
  maxResultCharacters?: number | undefined;
  /** Receives warnings for the user. By default they go to stderr. */
  onWarning?: ((message: string) => void) | undefined;
}

export interface ChatOptions {
  /** The `messages` of an earlier chat. */
  history?: readonly AgentMessage[] | undefined;
  /** Cancels the chat: the model's turn, and the tool calls in flight. */
  signal?: AbortSignal | undefined;
  /** Receives events; not awaited. If it throws, the chat fails with `listener_failed`. */
  onEvent?: ((event: AgentEvent) => void) | undefined;
}

/** A model with the tools of MCP servers. */
export class AiAgent implements AsyncDisposable {
  private readonly options: AiAgentOptions;
  private readonly model: Model;
  private readonly toolbox: Toolbox;
  private readonly allows: (tool: AgentTool) => boolean;
  /** Set if the tools come from a project. */
  private readonly runs: ProjectRuns | undefined;
  private readonly warned: (message: string) => void;
  private readonly ending = new AbortController();

  constructor(options: AiAgentOptions) {
    const { onWarning = (message) => console.warn(`switchboard: ${message}`), nativeTools = [] } = options;
    const { tools } = options;
    this.options = options;
    this.model = modelOf(options);
    this.warned = onceEach(onWarning);
    const local = new LocalToolbox({ ...serversOf(options), onWarning: this.warned });
    this.runs = options.url === undefined ? undefined : new ProjectRuns(options.url, this.warned);
    this.toolbox = new CombinedTools(local, nativeTools, this.warned);
    this.allows = tools === undefined ? () => true : allowedBy(tools);
  }

  /** Starts its servers one after the other. Rejects with the first failure. The first chat starts them otherwise. */
  async start(): Promise<void> {
    await this.toolbox.start();
    // Warns about hidden names now instead of with the first chat.
    this.tools();
  }

  /** The tools that the model is offered, after the start. */
  tools(): readonly AgentTool[] {
    return this.toolbox.tools().filter(this.allows);
  }

  /** Rejects with a `ChatError`, which has the conversation so far. */
  async chat(input: string | readonly AgentMessage[], options: ChatOptions = {}): Promise<ChatResult> {
    const { history = [], onEvent } = options;
    const { name = DEFAULT_NAME, system, tools, maxSteps, maxResultCharacters } = this.options;
    const messages = [...history, ...messagesOf(input)];
    const { signal: ending } = this.ending;
    const signal = options.signal === undefined ? ending : AbortSignal.any([options.signal, ending]);
    try {
      signal.throwIfAborted();
      await unlessAborted(this.start(), signal);
    } catch (thrown) {
      throw chatError(thrown, new Chat(messages, () => {}), signal);
    }
    const { model, toolbox, allows, warned: onWarning } = this;
    const run = await this.runs?.begin({
      ...{ agent: name, model: model.name, system: system ?? null, tools: tools ?? null },
      input: textOf(messages.at(-1)?.content ?? []),
    });
    const emit = (event: AgentEvent) => {
      const isOurs = event.type === 'tool_end' && [NATIVE_SERVER, undefined].includes(event.call.server);
      if (isOurs) run?.call(event.call);
      onEvent?.(event);
    };
    const work = runLoop({
      ...{ model, toolbox, messages, system, maxSteps, maxResultCharacters, allows, signal, onWarning },
      ...{ onEvent: emit, runId: run?.id },
    });
    await work.then(
      (result) => run?.end(result),
      (error: ChatError) => run?.end(error),
    );
    return work;
  }

  /** Like `chat`, as a stream of events. Ending the iteration cancels the chat. */
  async *chatStream(
    input: string | readonly AgentMessage[],
    { history, signal }: Omit<ChatOptions, 'onEvent'> = {},
  ): AsyncGenerator<AgentEvent, void, undefined> {
    const gone = new AbortController();
    const events = new EventQueue<AgentEvent>();
    const chat = this.chat(input, {
      history,
      signal: signal === undefined ? gone.signal : AbortSignal.any([signal, gone.signal]),
      onEvent: (event) => events.add(event),
    });
    events.endWith(chat);
    try {
      yield* events;
    } finally {
      gone.abort();
      await chat.catch(() => {});
    }
  }

  /** Cancels its chats and stops every process that it started. It cannot be restarted. */
  async stop(): Promise<void> {
    this.ending.abort(new SwitchboardError('server_unavailable', 'The agent was stopped.'));
    await this.toolbox.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

function modelOf({ model, client, apiKey, baseUrl, maxTokens }: AiAgentOptions): Model {
  if (typeof model === 'string') return new ClaudeModel({ model, client, apiKey, baseUrl, maxTokens });
  const options = { client, apiKey, baseUrl, maxTokens };
  const idle = Object.entries(options).find(([, value]) => value !== undefined);
  if (idle === undefined) return model;
  throw wrong(`\`${idle[0]}\` has no effect if \`model\` is not a name: pass it to that model.`);
}

function serversOf({ name, servers = {}, url }: AiAgentOptions): Omit<LocalToolboxOptions, 'onWarning'> {
  if (NATIVE_SERVER in servers) {
    throw wrong(
      `A server cannot be named "${NATIVE_SERVER}", which is reserved for native tools. Rename it.`,
    );
  }
  if (url === undefined) return { name, servers };
  if (Object.keys(servers).length === 0) return { name, ...projectOf(url) };
  throw wrong('`servers` and `url` are both set: remove one, or add {"url": …} to the servers.');
}

function messagesOf(input: string | readonly AgentMessage[]): readonly AgentMessage[] {
  if (typeof input !== 'string') return input;
  if (input.trim() === '') throw new SwitchboardError('invalid_input', 'The chat input is empty.');
  return [{ role: 'user', content: [{ type: 'text', text: input }] }];
}

function wrong(what: string): SwitchboardError {
  return new SwitchboardError('invalid_config', what);
}

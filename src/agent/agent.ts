import type { ServerEntry } from '../config.ts';
import type { AgentEvent, ChatResult } from './events.ts';
import type { AgentMessage, Model } from './model.ts';
import type { NativeTool } from './native-tools.ts';
import type { AgentTool } from './toolbox.ts';

export interface AiAgentOptions {
  /** MCP servers of its own, as in `mcpServers` of a configuration file. */
  servers?: Record<string, ServerEntry> | undefined;
  /** A project of a running Switchboard, in place of servers of its own: `http://127.0.0.1:7400/mcp/<project>`. */
  url?: string | undefined;
  /** Tools that run in this process. */
  nativeTools?: readonly NativeTool[] | undefined;
  /** The name of a Claude model, or any other model. */
  model: string | Model;
  system?: string | undefined;
  /** How long an answer may be. Only where `model` is a name. */
  maxTokens?: number | undefined;
  /** How many turns the model may have in a chat. */
  maxSteps?: number | undefined;
  /** The tools that it may use, by their names, or by patterns with `*`; without it, all. */
  tools?: readonly string[] | undefined;
  /** Only where `model` is a name. Without it, it comes from where the SDK looks for it. */
  apiKey?: string | undefined;
  /** Only where `model` is a name. */
  baseUrl?: string | undefined;
  /** What a tool gives beyond this is cut. */
  maxResultCharacters?: number | undefined;
  /** Told of what a user should know. Without it, warnings go to stderr. */
  onWarning?: ((message: string) => void) | undefined;
}

export interface ChatOptions {
  /** What was said before: the `messages` of an earlier chat. */
  history?: readonly AgentMessage[] | undefined;
  /** Ends the chat: the model's turn, and the tool calls under way. */
  signal?: AbortSignal | undefined;
  onEvent?: ((event: AgentEvent) => void) | undefined;
}

/** A model with the tools of MCP servers. */
export class AiAgent implements AsyncDisposable {
  constructor(_options: AiAgentOptions) {}

  /** Starts its servers, one after the other; fails with the first that cannot be started. Chats do it where nobody did. */
  start(): Promise<void> {
    throw new Error('to be built');
  }

  /** The tools that the model is offered. They are known when it has started. */
  tools(): readonly AgentTool[] {
    throw new Error('to be built');
  }

  chat(_input: string | readonly AgentMessage[], _options: ChatOptions = {}): Promise<ChatResult> {
    throw new Error('to be built');
  }

  /** The same, event by event. Who stops to listen cancels it. */
  chatStream(
    _input: string | readonly AgentMessage[],
    _options: Omit<ChatOptions, 'onEvent'> = {},
  ): AsyncIterable<AgentEvent> {
    throw new Error('to be built');
  }

  /** Ends the chats under way and every process that it started. */
  stop(): Promise<void> {
    throw new Error('to be built');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

import { setTimeout as pause } from 'node:timers/promises';
import type Anthropic from '@anthropic-ai/sdk';
import { SwitchboardError } from '../errors.ts';
import { claudeFailure, isInterrupted, rejectedTool } from './claude/failures.ts';
import { loadSdk } from './claude/sdk.ts';
import { type OfferedTool, OfferedTools } from './claude/tool-schema.ts';
import { messageParams, partsOf, toolParams } from './claude/translate.ts';
import type { Model, Turn, TurnRequest } from './model.ts';

/**
 * The part of Anthropic's client that we use. Those for Bedrock, Vertex and Foundry have it too. It does not use the SDK's
 * types, because the SDK is optional.
 */
export interface ClaudeClient {
  readonly baseURL?: string;
  readonly messages: {
    stream(params: object, options?: { signal?: AbortSignal }): ClaudeStream;
  };
}

interface ClaudeStream {
  on(event: 'text', listener: (text: string) => void): unknown;
  /** A `Message` of the SDK. */
  finalMessage(): Promise<object>;
}

export interface ClaudeOptions {
  /** The name of the model, as `claude-…`, or as the client calls it. */
  model: string;
  /** A client to use instead of `apiKey` and `baseUrl`: `new AnthropicBedrock()`, … */
  client?: ClaudeClient | undefined;
  /** By default the SDK finds it: ANTHROPIC_API_KEY, or a profile. */
  apiKey?: string | undefined;
  /** Anthropic's API by default. */
  baseUrl?: string | undefined;
  /** The maximum length of a response. */
  maxTokens?: number | undefined;
  /** More parameters of the Messages API: `temperature`, `thinking`, … */
  parameters?: Record<string, unknown> | undefined;
  /** The delay before an interrupted response is retried; doubled for the second retry. */
  retryDelayMs?: number | undefined;
}

/** The same as the SDK's own retries of requests without a response. */
const MAX_RETRIES = 2;
const RETRY_DELAY_MS = 500;
/** Each costs a request. */
const MAX_REJECTED_TOOLS = 20;

const DEFAULT_MAX_TOKENS = 16_000;

const stopReasons: Record<Anthropic.StopReason, Turn['stopReason']> = {
  end_turn: 'end',
  stop_sequence: 'end',
  tool_use: 'tools',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'refused',
  pause_turn: 'paused',
};

/** Claude, through Anthropic's SDK. */
export class ClaudeModel implements Model {
  readonly name: string;
  private readonly options: ClaudeOptions;
  private readonly tools = new OfferedTools();
  private client: Promise<ClaudeClient> | undefined;

  constructor(options: ClaudeOptions) {
    const { client, apiKey, baseUrl } = options;
    if (client !== undefined && (apiKey !== undefined || baseUrl !== undefined)) {
      const what = '`apiKey` and `baseUrl` have no effect with `client`: pass them to that client.';
      throw new SwitchboardError('invalid_config', what);
    }
    this.name = options.model;
    this.options = options;
  }

  async turn(request: TurnRequest): Promise<Turn> {
    const { signal, onText, onWarning } = request;
    this.client ??= this.open();
    const client = await this.client;
    let retries = 0;
    for (let rejections = 0; ; ) {
      const offered = this.tools.offer(request.tools, onWarning);
      let hasText = false;
      try {
        const stream = client.messages.stream(this.params(request, offered), { signal });
        stream.on('text', (text) => {
          hasText = true;
          onText(text);
        });
        return turnOf((await stream.finalMessage()) as Anthropic.Message, offered);
      } catch (error) {
        signal.throwIfAborted();
        const rejected = rejectedTool(error);
        const tool = offered[rejected?.index ?? -1]?.tool;
        if (tool !== undefined && rejections++ < MAX_REJECTED_TOOLS) {
          this.tools.exclude(tool, `Claude's API rejects it: ${rejected!.why}`);
          continue;
        }
        // Text that was passed on cannot be taken back, and a second response would differ.
        if (hasText || retries >= MAX_RETRIES || !isInterrupted(error))
          throw claudeFailure(error, client.baseURL);
        await this.pause(retries++, signal);
      }
    }
  }

  private params(
    { system, messages }: TurnRequest,
    offered: readonly OfferedTool[],
  ): Anthropic.MessageStreamParams {
    const { maxTokens = DEFAULT_MAX_TOKENS, parameters = {} } = this.options;
    return {
      model: this.name,
      max_tokens: maxTokens,
      ...(system === undefined || system.trim() === '' ? {} : { system: [cached(system)] }),
      ...(offered.length === 0 ? {} : { tools: toolParams(offered) }),
      messages: messageParams(messages, offered),
      ...parameters,
    };
  }

  /** With jitter, so that not all clients return at once. */
  private async pause(retries: number, signal: AbortSignal): Promise<void> {
    const { retryDelayMs = RETRY_DELAY_MS } = this.options;
    const delayMs = retryDelayMs * 2 ** retries * (0.75 + Math.random() / 4);
    await pause(delayMs, undefined, { signal });
  }

  private async open(): Promise<ClaudeClient> {
    const { client, apiKey, baseUrl } = this.options;
    if (client !== undefined) return client;
    const sdk = await loadSdk();
    return new sdk.default({
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(baseUrl === undefined ? {} : { baseURL: baseUrl }),
    });
  }
}

function cached(text: string): Anthropic.TextBlockParam {
  return { type: 'text', text, cache_control: { type: 'ephemeral' } };
}

function turnOf({ content, stop_reason, usage }: Anthropic.Message, offered: readonly OfferedTool[]): Turn {
  return {
    content: partsOf(content, offered),
    stopReason: stopReasons[stop_reason ?? 'end_turn'] ?? 'end',
    usage: {
      inputTokens: usage.input_tokens,
      outputTokens: usage.output_tokens,
      cacheReadTokens: usage.cache_read_input_tokens ?? 0,
      cacheWriteTokens: usage.cache_creation_input_tokens ?? 0,
    },
    raw: { claude: content },
  };
}

import type Anthropic from '@anthropic-ai/sdk';
import { claudeFailure } from './claude/failures.ts';
import { loadSdk, type Sdk } from './claude/sdk.ts';
import { messageParams, partsOf, toolParams } from './claude/translate.ts';
import type { Model, Turn, TurnRequest } from './model.ts';

export interface ClaudeOptions {
  /** The name of the model, as `claude-…`. */
  model: string;
  /** Without one, it comes from where the SDK looks for it: ANTHROPIC_API_KEY, or a profile. */
  apiKey?: string | undefined;
  /** Another address than Anthropic's own. */
  baseUrl?: string | undefined;
  /** How long an answer may be. */
  maxTokens?: number | undefined;
  /** More parameters of the Messages API, sent as they are: `temperature`, `thinking`, … */
  parameters?: Record<string, unknown> | undefined;
}

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
  private loaded: Promise<{ sdk: Sdk; client: Anthropic }> | undefined;

  constructor(options: ClaudeOptions) {
    this.name = options.model;
    this.options = options;
  }

  async turn({ system, messages, tools, signal, onText }: TurnRequest): Promise<Turn> {
    this.loaded ??= this.load();
    const { sdk, client } = await this.loaded;
    const { maxTokens = DEFAULT_MAX_TOKENS, parameters = {} } = this.options;
    const request: Anthropic.MessageStreamParams = {
      model: this.name,
      max_tokens: maxTokens,
      ...(system === undefined || system.trim() === '' ? {} : { system: [cached(system)] }),
      ...(tools.length === 0 ? {} : { tools: toolParams(tools) }),
      messages: messageParams(messages),
      ...parameters,
    };
    try {
      const stream = client.messages.stream(request, signal === undefined ? {} : { signal });
      stream.on('text', (text) => onText(text));
      return turnOf(await stream.finalMessage());
    } catch (error) {
      signal?.throwIfAborted();
      throw claudeFailure(sdk, error, client.baseURL);
    }
  }

  private async load(): Promise<{ sdk: Sdk; client: Anthropic }> {
    const sdk = await loadSdk();
    const { apiKey, baseUrl } = this.options;
    const client = new sdk.default({
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(baseUrl === undefined ? {} : { baseURL: baseUrl }),
    });
    return { sdk, client };
  }
}

function cached(text: string): Anthropic.TextBlockParam {
  return { type: 'text', text, cache_control: { type: 'ephemeral' } };
}

function turnOf({ content, stop_reason, usage }: Anthropic.Message): Turn {
  return {
    content: partsOf(content),
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

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

/** Claude, through Anthropic's SDK. */
export class ClaudeModel implements Model {
  readonly name: string;

  constructor(options: ClaudeOptions) {
    this.name = options.model;
  }

  turn(_request: TurnRequest): Promise<Turn> {
    throw new Error('to be built');
  }
}

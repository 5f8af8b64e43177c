import type { AgentTool } from './toolbox.ts';

/** A message in the form that all models share. `raw` is what one provider needs back unchanged. */
export type AgentMessage =
  | { role: 'user'; content: readonly UserPart[] }
  | { role: 'assistant'; content: readonly AssistantPart[]; raw?: unknown };

export type UserPart = { type: 'text'; text: string } | ToolResultPart;

export interface ToolResultPart {
  type: 'tool_result';
  id: string;
  content: readonly ResultContent[];
  isError: boolean;
}

export type ResultContent =
  | { type: 'text'; text: string }
  | { type: 'image'; mediaType: string; data: string }
  | { type: 'document'; mediaType: string; data: string; title?: string };

export type AssistantPart =
  | { type: 'text'; text: string }
  | { type: 'tool_call'; id: string; name: string; input: Record<string, unknown> };

export interface TokenUsage {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
}

export const noUsage: Readonly<TokenUsage> = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
};

/** As the API and the database spell it. */
export function usageRow({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }: TokenUsage) {
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cache_read_tokens: cacheReadTokens,
    cache_write_tokens: cacheWriteTokens,
  };
}

/** The text of a message or a turn, without tool calls and results. */
export function textOf(content: readonly (UserPart | AssistantPart)[]): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

export interface Turn {
  content: readonly AssistantPart[];
  /** `tools`: it waits for the results of its tool calls. */
  stopReason: 'end' | 'tools' | 'length' | 'refused' | 'paused';
  usage: TokenUsage;
  raw?: unknown;
}

export interface TurnRequest {
  system: string | undefined;
  messages: readonly AgentMessage[];
  tools: readonly AgentTool[];
  /** Aborted when the response is no longer needed. */
  signal: AbortSignal;
  /** Receives text as it arrives. Never throws. */
  onText(text: string): void;
  /** For the user, such as a tool that cannot be offered. Repeated messages are passed on once. */
  onWarning(message: string): void;
}

export interface Model {
  readonly name: string;
  turn(request: TurnRequest): Promise<Turn>;
}

import type { AgentTool } from './toolbox.ts';

/** A conversation, as every model takes it. `raw` is what one provider wants to see again as it was. */
export type AgentMessage =
  | { role: 'user'; content: readonly UserPart[] }
  | { role: 'assistant'; content: readonly AssistantPart[]; raw?: unknown };

export type UserPart = { type: 'text'; text: string } | ToolResultPart;

/** What came of a tool call, as it is told to the model. */
export interface ToolResultPart {
  type: 'tool_result';
  id: string;
  /** What the tool gave: text, images, documents. */
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

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
}

/** What a model says in its turn. */
export interface Turn {
  content: readonly AssistantPart[];
  /** `tools`: it waits for what its tool calls give. */
  stopReason: 'end' | 'tools' | 'length' | 'refused' | 'paused';
  usage: Usage;
  raw?: unknown;
}

export interface TurnRequest {
  system: string | undefined;
  messages: readonly AgentMessage[];
  tools: readonly AgentTool[];
  /** Nobody waits for the answer any more when it says so. */
  signal: AbortSignal;
  /** Told of text as it comes. It never throws. */
  onText(text: string): void;
  /** Told of what a user should know, such as a tool that cannot be offered; as often as you like, it is passed on once. */
  onWarning(message: string): void;
}

/** Whoever answers. Another provider is one more of these. */
export interface Model {
  readonly name: string;
  turn(request: TurnRequest): Promise<Turn>;
}

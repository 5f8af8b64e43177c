import type { AgentMessage, ResultContent, Turn, Usage } from './model.ts';
import type { ToolOutcome } from './toolbox.ts';

/** A tool call that the model made. */
export interface ToolCallStart {
  /** As the model calls it. */
  id: string;
  name: string;
  /** Whose tool it is; undefined where there is no such tool. */
  server: string | undefined;
  input: Record<string, unknown>;
  /** The turn of the model that it was made in, counted from 1. */
  step: number;
}

/** The same when it is over. */
export interface ToolCallRecord extends ToolCallStart {
  /** As it was told to the model. */
  content: readonly ResultContent[];
  isError: boolean;
  /** What the tool gave, whole; undefined where it gave nothing: it is unknown, away, or was not called. */
  outcome: ToolOutcome | undefined;
  durationMs: number;
}

/** What happens in a chat, in the order in which it happens. */
export type AgentEvent =
  /** A piece of what the model says. */
  | { type: 'text'; step: number; text: string }
  /** A message joined the conversation: a turn of the model, or what its tool calls gave. */
  | { type: 'message'; step: number; message: AgentMessage }
  /** The model has had its turn. The tool calls that it made come after this. */
  | { type: 'step'; step: number; stopReason: Turn['stopReason']; usage: Usage }
  | { type: 'tool_start'; call: ToolCallStart }
  | { type: 'tool_end'; call: ToolCallRecord }
  | { type: 'done'; result: ChatResult };

export interface ChatResult {
  /** What the model said last. */
  text: string;
  /** The whole conversation: give it as the history of the next chat to go on with it. */
  messages: readonly AgentMessage[];
  toolCalls: readonly ToolCallRecord[];
  /** Of all steps. */
  usage: Usage;
  /** How many turns the model had. */
  steps: number;
  /** `length`: an answer reached its limit of tokens. `step_limit`: the model would have gone on. */
  stopReason: 'end' | 'length' | 'refused' | 'step_limit';
}

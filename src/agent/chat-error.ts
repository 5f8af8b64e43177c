import { asSwitchboardError, type ErrorCode, SwitchboardError } from '../errors.ts';
import type { ToolCallRecord } from './events.ts';
import type { AgentMessage, Usage } from './model.ts';

/** What happened in a chat until it ended without an answer. */
export interface ChatSoFar {
  /**
   * The whole conversation: give it as the history of the next chat to go on with it. Every tool call in it has a result; one
   * that was not finished has an error as such.
   */
  messages: readonly AgentMessage[];
  toolCalls: readonly ToolCallRecord[];
  /** Of all steps. */
  usage: Usage;
  /** How many turns the model had. */
  steps: number;
  /** What the model had begun to say in its last turn. It is no part of the conversation. */
  text: string;
}

/** A chat that failed, or that was cancelled. The cause is what was thrown, or the reason of the signal. */
export class ChatError extends SwitchboardError implements ChatSoFar {
  declare readonly messages: readonly AgentMessage[];
  declare readonly toolCalls: readonly ToolCallRecord[];
  declare readonly usage: Usage;
  declare readonly steps: number;
  declare readonly text: string;

  constructor(
    code: ErrorCode,
    message: string,
    cause: unknown,
    data: Record<string, unknown>,
    chat: ChatSoFar,
  ) {
    super(code, message, { cause, data });
    this.name = 'ChatError';
    const { messages, toolCalls, usage, steps, text } = chat;
    // Not shown wherever the error is printed: a conversation is long, and may be private.
    for (const [key, value] of Object.entries({ messages, toolCalls, usage, steps, text })) {
      Object.defineProperty(this, key, { value });
    }
  }
}

/** What a chat is ended with. `signal` is the one that its caller may cancel it by. */
export function chatError(thrown: unknown, chat: ChatSoFar, signal: AbortSignal | undefined): ChatError {
  if (thrown instanceof ChatError) return thrown;
  const isCancelled = signal?.aborted === true && thrown === signal.reason;
  const { code, message, data } = asSwitchboardError(thrown);
  const isOurs = thrown instanceof SwitchboardError;
  return new ChatError(isCancelled && !isOurs ? 'cancelled' : code, message, thrown, data, chat);
}

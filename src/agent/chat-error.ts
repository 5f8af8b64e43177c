import { asSwitchboardError, type ErrorCode, SwitchboardError } from '../errors.ts';
import type { ToolCallRecord } from './events.ts';
import type { AgentMessage, TokenUsage } from './model.ts';

/** The state of a chat that ended without a result. */
export interface ChatSoFar {
  /**
   * The whole conversation. Pass it as the history of the next chat to continue. Every tool call has a result; an unfinished
   * one has an error.
   */
  messages: readonly AgentMessage[];
  toolCalls: readonly ToolCallRecord[];
  /** Of all steps. */
  usage: TokenUsage;
  steps: number;
  /** The text of an unfinished turn. It is not part of the conversation. */
  text: string;
}

/** A failed or cancelled chat. The cause is the thrown error, or the reason of the signal. */
export class ChatError extends SwitchboardError implements ChatSoFar {
  declare readonly messages: readonly AgentMessage[];
  declare readonly toolCalls: readonly ToolCallRecord[];
  declare readonly usage: TokenUsage;
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
    // Not enumerable, because a conversation is long and may be private, and errors are printed.
    for (const [key, value] of Object.entries({ messages, toolCalls, usage, steps, text })) {
      Object.defineProperty(this, key, { value });
    }
  }
}

/** `signal` is the one that the caller cancels the chat with. */
export function chatError(thrown: unknown, chat: ChatSoFar, signal: AbortSignal | undefined): ChatError {
  if (thrown instanceof ChatError) return thrown;
  const isCancelled = signal?.aborted === true && thrown === signal.reason;
  const { code, message, data } = asSwitchboardError(thrown);
  const isOurs = thrown instanceof SwitchboardError;
  return new ChatError(isCancelled && !isOurs ? 'cancelled' : code, message, thrown, data, chat);
}

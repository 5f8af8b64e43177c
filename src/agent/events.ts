import { SwitchboardError } from '../errors.ts';
import type { AgentMessage, ResultContent, TokenUsage, Turn } from './model.ts';
import type { ToolOutcome } from './toolbox.ts';

export interface ToolCallStart {
  /** Chosen by the model. */
  id: string;
  name: string;
  /** Undefined if the tool does not exist. */
  server: string | undefined;
  input: Record<string, unknown>;
  /** The turn of the model, counted from 1. */
  step: number;
}

export interface ToolCallRecord extends ToolCallStart {
  /** What the model gets. */
  content: readonly ResultContent[];
  isError: boolean;
  /** The whole result; undefined if the tool is unknown, unavailable, or was not called. */
  outcome: ToolOutcome | undefined;
  durationMs: number;
}

/** What happens in a chat, in order. */
export type AgentEvent =
  | { type: 'text'; step: number; text: string }
  /** A message was added to the conversation: a turn of the model, or the results of its tool calls. */
  | { type: 'message'; step: number; message: AgentMessage }
  /** A turn of the model is complete. Its tool calls follow. */
  | { type: 'step'; step: number; stopReason: Turn['stopReason']; usage: TokenUsage }
  | { type: 'tool_start'; call: ToolCallStart }
  | { type: 'tool_end'; call: ToolCallRecord }
  | { type: 'done'; result: ChatResult };

export interface ChatResult {
  /** The text of the last turn. */
  text: string;
  /** The whole conversation. Pass it as the history of the next chat to continue. */
  messages: readonly AgentMessage[];
  toolCalls: readonly ToolCallRecord[];
  /** Of all steps. */
  usage: TokenUsage;
  steps: number;
  /** `length`: a turn reached the token limit. `step_limit`: the model wanted another turn. */
  stopReason: 'end' | 'length' | 'refused' | 'step_limit';
}

/** Emits the events of a chat. A listener that throws ends the chat, and gets no more events. */
export class ChatEvents {
  /** Aborted when the caller cancels the chat, or the listener failed. */
  readonly signal: AbortSignal;
  private readonly listener: (event: AgentEvent) => void;
  private readonly failure = new AbortController();
  private isOver = false;

  constructor(listener: (event: AgentEvent) => void, signal: AbortSignal | undefined) {
    this.listener = listener;
    this.signal = signal === undefined ? this.failure.signal : AbortSignal.any([signal, this.failure.signal]);
  }

  emit(event: AgentEvent): void {
    if (this.isOver || this.failure.signal.aborted) return;
    try {
      this.listener(event);
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      const what = `The listener of the chat threw an error on the event "${event.type}": ${why}`;
      this.failure.abort(new SwitchboardError('listener_failed', what, { cause: thrown }));
    }
  }

  /** Ignores later events, of a model or tool that does not observe the signal. */
  end(): void {
    this.isOver = true;
  }
}

/** Events for a consumer that iterates over them. */
export class EventQueue<Event> implements AsyncIterable<Event> {
  private readonly queued: Event[] = [];
  private isOver = false;
  private outcome: Promise<unknown> | undefined;
  private wake = () => {};

  add(event: Event): void {
    this.queued.push(event);
    this.wake();
  }

  /** Ends the iteration when the work settles. If it fails, the iteration fails after the last event. */
  endWith(work: Promise<unknown>): void {
    const over = () => {
      this.isOver = true;
      this.wake();
    };
    this.outcome = work;
    work.then(over, over);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    for (;;) {
      const next = this.queued.shift();
      if (next !== undefined) yield next;
      else if (this.isOver) break;
      else {
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
      }
    }
    await this.outcome;
  }
}

import type { ChatSoFar } from './chat-error.ts';
import type { AgentEvent, ToolCallRecord, ToolCallStart } from './events.ts';
import type { AgentMessage, Turn, Usage } from './model.ts';
import { failureContent } from './tool-results.ts';

/** What has happened in a chat. Whenever its tool calls are settled, it can be gone on with. */
export class Chat implements ChatSoFar {
  readonly messages: AgentMessage[];
  readonly toolCalls: ToolCallRecord[] = [];
  readonly usage: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  steps = 0;
  text = '';
  private readonly tell: (event: AgentEvent) => void;
  /** The calls of the last turn, each with what came of it. */
  private calls: { start: ToolCallStart; record: ToolCallRecord | undefined }[] = [];

  constructor(messages: readonly AgentMessage[], tell: (event: AgentEvent) => void) {
    this.messages = [...messages];
    this.tell = tell;
  }

  hear(text: string): void {
    this.text += text;
    this.tell({ type: 'text', step: this.steps + 1, text });
  }

  take({ content, raw, stopReason, usage }: Turn): void {
    this.steps++;
    this.text = '';
    for (const key of Object.keys(this.usage) as (keyof Usage)[]) this.usage[key] += usage[key];
    this.join(raw === undefined ? { role: 'assistant', content } : { role: 'assistant', content, raw });
    this.tell({ type: 'step', step: this.steps, stopReason, usage });
  }

  begin(calls: readonly ToolCallStart[]): void {
    this.calls = calls.map((start) => ({ start, record: undefined }));
  }

  /** What comes after they were settled is too late. */
  finish(index: number, record: ToolCallRecord): void {
    const call = this.calls[index];
    if (call !== undefined) call.record = record;
  }

  /** The results join the conversation. One in which a call has none cannot be gone on with, so those that were not finished get one too. */
  settle(why: string): void {
    if (this.calls.length === 0) return;
    const records = this.calls.map(({ start, record }) => record ?? unfinished(start, why));
    this.calls = [];
    this.toolCalls.push(...records);
    const content = records.map(({ id, content, isError }) => ({
      type: 'tool_result' as const,
      id,
      content,
      isError,
    }));
    this.join({ role: 'user', content });
  }

  private join(message: AgentMessage): void {
    this.messages.push(message);
    this.tell({ type: 'message', step: this.steps, message });
  }
}

function unfinished(start: ToolCallStart, why: string): ToolCallRecord {
  return { ...start, content: failureContent(why), isError: true, outcome: undefined, durationMs: 0 };
}

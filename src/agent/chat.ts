import type { ChatSoFar } from './chat-error.ts';
import type { AgentEvent, ToolCallRecord, ToolCallStart } from './events.ts';
import { type AgentMessage, noUsage, type TokenUsage, type Turn } from './model.ts';
import { failureContent } from './tool-results.ts';

/** The state of a chat. It can be continued whenever all tool calls are settled. */
export class Chat implements ChatSoFar {
  readonly messages: AgentMessage[];
  readonly toolCalls: ToolCallRecord[] = [];
  readonly usage: TokenUsage = { ...noUsage };
  steps = 0;
  text = '';
  private readonly emit: (event: AgentEvent) => void;
  /** The calls of the last turn. */
  private calls: { start: ToolCallStart; record: ToolCallRecord | undefined }[] = [];

  constructor(messages: readonly AgentMessage[], emit: (event: AgentEvent) => void) {
    this.messages = [...messages];
    this.emit = emit;
  }

  addText(text: string): void {
    this.text += text;
    this.emit({ type: 'text', step: this.steps + 1, text });
  }

  addTurn({ content, raw, stopReason, usage }: Turn): void {
    this.steps++;
    this.text = '';
    for (const key of Object.keys(this.usage) as (keyof TokenUsage)[]) this.usage[key] += usage[key];
    this.addMessage(raw === undefined ? { role: 'assistant', content } : { role: 'assistant', content, raw });
    this.emit({ type: 'step', step: this.steps, stopReason, usage });
  }

  beginCalls(calls: readonly ToolCallStart[]): void {
    this.calls = calls.map((start) => ({ start, record: undefined }));
  }

  /** Ignored after the calls were settled. */
  finishCall(index: number, record: ToolCallRecord): void {
    const call = this.calls[index];
    if (call !== undefined) call.record = record;
  }

  /** Adds the results to the conversation. Unfinished calls get an error, because every call needs a result to continue. */
  settleCalls(why: string): void {
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
    this.addMessage({ role: 'user', content });
  }

  private addMessage(message: AgentMessage): void {
    this.messages.push(message);
    this.emit({ type: 'message', step: this.steps, message });
  }
}

function unfinished(start: ToolCallStart, why: string): ToolCallRecord {
  return { ...start, content: failureContent(why), isError: true, outcome: undefined, durationMs: 0 };
}

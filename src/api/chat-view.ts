import type { AgentEvent, ChatResult, ToolCallRecord, ToolCallStart } from '../agent/events.ts';
import type { AgentMessage, AssistantPart, ResultContent, UserPart } from '../agent/model.ts';
import { usageRow } from '../agent/model.ts';
import type { ChatMessage } from './chat-messages.ts';
import type { ChatEvent, ChatView, ToolCallView } from './chat-views.ts';

type Part = Exclude<ChatMessage['content'], string>[number];
type ToolResult = Extract<Part, { type: 'tool_result' }>;

export function agentMessages(messages: readonly ChatMessage[]): AgentMessage[] {
  return messages.map((message): AgentMessage => {
    if (typeof message.content === 'string') {
      return { role: message.role, content: [{ type: 'text', text: message.content }] };
    }
    if (message.role === 'assistant') return { role: 'assistant', content: message.content };
    return {
      role: 'user',
      content: message.content.map((part) => (part.type === 'text' ? part : agentResult(part))),
    };
  });
}

export function chatViewOf(runId: string, result: ChatResult): ChatView {
  const { text, stopReason, steps, usage, messages, toolCalls } = result;
  return {
    ...{ run_id: runId, text, stop_reason: stopReason, steps, usage: usageRow(usage) },
    messages: messages.map(messageViewOf),
    tool_calls: toolCalls.map(toolCallView),
  };
}

/** Undefined for events that are not streamed. */
export function chatEventOf(event: AgentEvent): ChatEvent | undefined {
  switch (event.type) {
    case 'text':
      return { type: 'text', data: { step: event.step, text: event.text } };
    case 'tool_start':
      return { type: 'tool_start', data: startView(event.call) };
    case 'tool_end':
      return { type: 'tool_end', data: toolCallView(event.call) };
    case 'step':
      return { type: 'step', data: { step: event.step, usage: usageRow(event.usage) } };
    default:
      return undefined;
  }
}

function startView({ id, step, name, server, input }: ToolCallStart) {
  return { id, step, name, server: server ?? null, input };
}

function toolCallView(call: ToolCallRecord): ToolCallView {
  const texts = call.content.flatMap((item) => (item.type === 'text' ? [item.text] : []));
  return {
    ...startView(call),
    is_error: call.isError,
    text: texts.join('\n'),
    duration_ms: Math.round(call.durationMs * 1_000) / 1_000,
  };
}

export function messageViewOf({ role, content }: AgentMessage): ChatMessage {
  return { role, content: content.map(partView) } as ChatMessage;
}

function partView(part: UserPart | AssistantPart): Part {
  if (part.type !== 'tool_result') return part;
  const { type, id, isError, content } = part;
  return { type, id, is_error: isError, content: content.map(resultView) };
}

function resultView(item: ResultContent): ToolResult['content'][number] {
  if (item.type === 'text') return item;
  const { mediaType, ...rest } = item;
  return { ...rest, media_type: mediaType };
}

function agentResult({ type, id, is_error, content }: ToolResult): UserPart {
  return { type, id, isError: is_error, content: content.map(agentContent) };
}

function agentContent(item: ToolResult['content'][number]): ResultContent {
  if (item.type === 'text') return item;
  const { data, media_type: mediaType } = item;
  if (item.type === 'image') return { type: 'image', mediaType, data };
  return { type: 'document', mediaType, data, ...(item.title === undefined ? {} : { title: item.title }) };
}

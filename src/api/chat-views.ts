import { z } from 'zod';
import { chatMessage } from './chat-messages.ts';
import { callView } from './views.ts';

const time = z.iso.datetime();
const id = z.uuid();
const count = z.int().min(0);

const usageView = z.object({
  input_tokens: count,
  output_tokens: count,
  cache_read_tokens: count,
  cache_write_tokens: count,
});

const stopReason = z
  .enum(['end', 'length', 'refused', 'step_limit'])
  .describe('`length`: a turn reached its token limit; `step_limit`: the model wanted more turns');

export const toolCallView = z.object({
  id: z.string().describe('The id that the model assigned'),
  step: z.int().min(1).describe('The turn of the model that made the call'),
  name: z.string(),
  server: z.string().nullable().describe('null if there is no such tool'),
  input: z.record(z.string(), z.unknown()),
  is_error: z.boolean(),
  text: z.string().describe('The text of the result that the model received'),
  duration_ms: z.number().min(0),
});

export const chatView = z.object({
  run_id: id,
  text: z.string().describe('The last text of the model'),
  stop_reason: stopReason,
  steps: count,
  usage: usageView,
  messages: z
    .array(chatMessage)
    .describe('The new messages: append them to your own to continue the conversation'),
  tool_calls: z.array(toolCallView),
});

export const runView = z.object({
  id,
  status: z.enum(['running', 'completed', 'failed', 'cancelled']),
  agent: z
    .string()
    .nullable()
    .describe('The name of an agent outside Switchboard; null for a chat of Switchboard'),
  model: z.string(),
  system: z.string().nullable(),
  tools: z.array(z.string()).nullable().describe('The tools that the run was allowed to use; null means all'),
  input: z.string().describe('The last user message'),
  output: z.string().nullable().describe('The last text of the model'),
  stop_reason: stopReason.nullable(),
  steps: count,
  usage: usageView.nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  started_at: time,
  finished_at: time.nullable(),
});

export const begunRun = z.object({ id });

export const runList = z.object({
  runs: z.array(runView),
  next_cursor: z.string().nullable().describe('For the next page; null on the last page'),
});

const runMessage = z.object({
  id,
  role: z.enum(['user', 'assistant']),
  content: z
    .array(z.looseObject({ type: z.string() }))
    .describe('As in chats, without secrets, images and large content'),
  created_at: time,
});

export const runDetails = runView.extend({
  messages: z.array(runMessage),
  tool_calls: z.array(callView).describe('Oldest first'),
});

export type ToolCallView = z.infer<typeof toolCallView>;
export type ChatView = z.infer<typeof chatView>;
export type RunView = z.infer<typeof runView>;
export type RunList = z.infer<typeof runList>;
export type RunDetails = z.infer<typeof runDetails>;

export type ChatEvent =
  | { type: 'text'; data: { step: number; text: string } }
  | { type: 'tool_start'; data: Pick<ToolCallView, 'id' | 'step' | 'name' | 'server' | 'input'> }
  | { type: 'tool_end'; data: ToolCallView }
  | { type: 'step'; data: { step: number; usage: z.infer<typeof usageView> } };

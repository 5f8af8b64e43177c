import { z } from 'zod';
import { chatMessage } from './chat-messages.ts';
import { callView } from './views.ts';

/** What the API answers with for chats and runs. */

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
  .describe('`length`: a turn reached its limit of tokens; `step_limit`: the model would have gone on');

export const toolCallView = z.object({
  id: z.string().describe('As the model calls it'),
  step: z.int().min(1).describe('The turn of the model that it was made in'),
  name: z.string(),
  server: z.string().nullable().describe('null where there is no such tool'),
  input: z.record(z.string(), z.unknown()),
  is_error: z.boolean(),
  text: z.string().describe('What the model was told, as far as it is text'),
  duration_ms: z.number().min(0),
});

export const chatView = z.object({
  run_id: id,
  text: z.string().describe('What the model said last'),
  stop_reason: stopReason,
  steps: count,
  usage: usageView,
  messages: z
    .array(chatMessage)
    .describe('What joined the conversation: send it behind your own messages to go on with it'),
  tool_calls: z.array(toolCallView),
});

export const runView = z.object({
  id,
  status: z.enum(['running', 'completed', 'failed', 'cancelled']),
  agent: z
    .string()
    .nullable()
    .describe('What an agent calls itself that runs elsewhere; null: a chat of Switchboard'),
  model: z.string(),
  system: z.string().nullable(),
  tools: z.array(z.string()).nullable().describe('Those that it was allowed to use; null is all'),
  input: z.string().describe('What was asked'),
  output: z.string().nullable().describe('What the model said last'),
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
  next_cursor: z.string().nullable().describe('For the next page; null where this is the last one'),
});

const runMessage = z.object({
  id,
  role: z.enum(['user', 'assistant']),
  content: z
    .array(z.looseObject({ type: z.string() }))
    .describe('As in chats; secrets, images and what is large are left out'),
  created_at: time,
});

export const runDetails = runView.extend({
  messages: z.array(runMessage),
  tool_calls: z.array(callView).describe('The oldest first'),
});

export type ToolCallView = z.infer<typeof toolCallView>;
export type ChatView = z.infer<typeof chatView>;
export type RunView = z.infer<typeof runView>;
export type RunList = z.infer<typeof runList>;
export type RunDetails = z.infer<typeof runDetails>;

/** What is told of a chat while it goes on, by the names of the events. */
export type ChatEvent =
  | { type: 'text'; data: { step: number; text: string } }
  | { type: 'tool_start'; data: Pick<ToolCallView, 'id' | 'step' | 'name' | 'server' | 'input'> }
  | { type: 'tool_end'; data: ToolCallView }
  | { type: 'step'; data: { step: number; usage: z.infer<typeof usageView> } };

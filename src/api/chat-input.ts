import { z } from 'zod';
import { fields, flag, integer, listOf, secretName, text } from '../config/fields.ts';
import { type ChatMessage, chatMessage } from './chat-messages.ts';
import { readToolBody } from './http/body.ts';
import { pageLimit } from './times.ts';

export const DEFAULT_SECRET = 'ANTHROPIC_API_KEY';

const longText = z.string({ error: 'must be a string' });

export const newChat = fields({
  input: longText
    .min(1, 'must not be empty')
    .optional()
    .describe('The user message to respond to; follows `messages` if both are given'),
  messages: listOf('messages', chatMessage).min(1, 'must not be empty').optional(),
  model: text(256, 1).optional().describe('The name of a Claude model; defaults to the setting `chat.model`'),
  system: longText.optional().describe('The system prompt'),
  tools: listOf('names', text(256, 1))
    .optional()
    .describe('The tools that the model may use, by listed name or by pattern with `*`; all by default'),
  max_steps: integer(1, 1_000).optional().describe('The maximum number of turns of the model; 50 by default'),
  max_tokens: integer(1, 1_000_000).optional().describe('The maximum tokens per turn; 16000 by default'),
  api_key_secret: secretName
    .optional()
    .describe(`The secret with the API key; default: ${DEFAULT_SECRET}. Only operators may name another`),
  stream: flag
    .optional()
    .describe(
      'Whether to respond with Server-Sent Events: `run`, `text`, `tool_start`, `tool_end`, `step`, then `done` with the response, or `error`',
    ),
}).superRefine(({ input, messages }, context) => {
  if (input === undefined && messages?.at(-1)?.role !== 'user') {
    const message = messages === undefined ? 'is missing, and so are messages' : lastMustBeUser;
    context.addIssue({ code: 'custom', path: [messages === undefined ? 'input' : 'messages'], message });
  }
});

const lastMustBeUser = 'must end with a message of the user, or input must be there';

export interface NewChat {
  messages: ChatMessage[];
  model: string | undefined;
  system: string | undefined;
  tools: string[] | undefined;
  maxSteps: number | undefined;
  maxTokens: number | undefined;
  apiKeySecret: string;
}

export function readChat(body: string): { chat: NewChat; isStream: boolean } {
  const { input, messages = [], ...rest } = readToolBody(newChat, body);
  const last = input === undefined ? [] : [{ role: 'user' as const, content: input }];
  return {
    chat: {
      messages: [...messages, ...last],
      model: rest.model,
      system: rest.system,
      tools: rest.tools,
      maxSteps: rest.max_steps,
      maxTokens: rest.max_tokens,
      apiKeySecret: rest.api_key_secret ?? DEFAULT_SECRET,
    },
    isStream: rest.stream ?? false,
  };
}

/** Query values are strings. */
export const runQuery = fields({
  limit: pageLimit(100, 20),
  cursor: text(1_024, 1).optional(),
});

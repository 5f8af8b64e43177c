import { z } from 'zod';
import { fields, flag, text } from '../config/fields.ts';

/** Requests and responses share this format, so that a response can be continued. */

/** Tool results may contain characters that other texts must not. */
const anyText = z.string({ error: 'must be a string' });
const callId = text(256, 1).describe('The id that the model assigned');
const base64 = z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/, 'must be base64');

const textPart = fields({ type: z.literal('text'), text: anyText });
const file = { media_type: text(256, 1), data: base64 };
const resultPart = z.discriminatedUnion('type', [
  textPart,
  fields({ type: z.literal('image'), ...file }),
  fields({ type: z.literal('document'), ...file, title: anyText.optional() }),
]);
const toolCall = fields({
  type: z.literal('tool_call'),
  id: callId,
  name: text(256, 1),
  input: z.record(z.string(), z.unknown(), { error: 'must be an object' }),
});
const toolResult = fields({
  type: z.literal('tool_result'),
  id: callId,
  content: z.array(resultPart, { error: 'must be a list of parts' }),
  is_error: flag,
});

/** A string is short for a list with one text. */
const content = <Part extends z.ZodType>(part: Part) =>
  z.union([anyText, z.array(part).min(1)], {
    error: 'must be a text, or a list of parts that this role can have',
  });

export const chatMessage = z.discriminatedUnion(
  'role',
  [
    fields({
      role: z.literal('user'),
      content: content(z.discriminatedUnion('type', [textPart, toolResult])),
    }),
    fields({
      role: z.literal('assistant'),
      content: content(z.discriminatedUnion('type', [textPart, toolCall])),
    }),
  ],
  { error: 'must be a message with the role "user" or "assistant"' },
);

export type ChatMessage = z.infer<typeof chatMessage>;

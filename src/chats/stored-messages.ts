import type { AgentMessage, AssistantPart, ResultContent, UserPart } from '../agent/model.ts';
import { cleanValue } from '../records/call-record.ts';

/** What is larger is not kept: records are for looking into, not for storing results. */
const MAX_CHARACTERS = 256 * 1024;

type Clean = (text: string) => string;

/** A message as it is written down: without secrets, and without what is large. */
export function keptContent({ content }: AgentMessage, clean: Clean): object[] {
  return content.map((part: UserPart | AssistantPart) => keptPart(part, clean));
}

function keptPart(part: UserPart | AssistantPart, clean: Clean): object {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: cut(clean(part.text)) };
    case 'tool_call': {
      const { type, id, name, input } = part;
      return { type, id, name: clean(name), input: JSON.parse(keptValue(input, clean)) as unknown };
    }
    case 'tool_result': {
      const { type, id, isError, content } = part;
      return { type, id, is_error: isError, content: content.map((item) => keptResult(item, clean)) };
    }
  }
}

/** What a tool was called with, or gave, as JSON text. */
export function keptValue(value: unknown, clean: Clean): string {
  const text = JSON.stringify(cleanValue(value, clean));
  if (text.length <= MAX_CHARACTERS) return text;
  return JSON.stringify({ omitted: `${text.length} characters are too many to be kept` });
}

function keptResult(item: ResultContent, clean: Clean): object {
  if (item.type === 'text') return { type: 'text', text: cut(clean(item.text)) };
  const { type, mediaType, data } = item;
  return { type, media_type: mediaType, omitted: `${data.length} characters of base64 are not kept` };
}

function cut(text: string): string {
  if (text.length <= MAX_CHARACTERS) return text;
  return `${text.slice(0, MAX_CHARACTERS)} [${text.length - MAX_CHARACTERS} more characters are not kept]`;
}

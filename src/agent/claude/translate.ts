import type Anthropic from '@anthropic-ai/sdk';
import { asObject } from '../../json.ts';
import type { AgentMessage, AssistantPart, ResultContent, UserPart } from '../model.ts';
import type { OfferedTool } from './tool-schema.ts';

type ResultBlock = Exclude<Anthropic.ToolResultBlockParam['content'], string | undefined>[number];

const imageTypes: readonly string[] = [
  'image/jpeg',
  'image/png',
  'image/gif',
  'image/webp',
] satisfies Anthropic.Base64ImageSource['media_type'][];

const ephemeral = { cache_control: { type: 'ephemeral' } } as const;

/** The last tool is a cache breakpoint, because every chat sends the same tools. */
export function toolParams(tools: readonly OfferedTool[]): Anthropic.Tool[] {
  return tools.map(({ tool: { name, description }, schema }, index) => ({
    name,
    ...(description === undefined ? {} : { description }),
    input_schema: schema,
    ...(index === tools.length - 1 ? ephemeral : {}),
  }));
}

/** The last message is a cache breakpoint, because the next step sends all of it again. */
export function messageParams(
  messages: readonly AgentMessage[],
  tools: readonly OfferedTool[],
): Anthropic.MessageParam[] {
  const renamed = renaming(tools);
  const params: { role: 'user' | 'assistant'; content: Anthropic.ContentBlockParam[] }[] = [];
  for (const message of messages) {
    const content =
      message.role === 'user' ? message.content.map(userBlock) : assistantBlocks(message, renamed);
    const shown = content.filter((block) => block.type !== 'text' || block.text.trim() !== '');
    // The API rejects a conversation with an empty message.
    if (shown.length > 0) params.push({ role: message.role, content: shown });
  }
  const last = params.at(-1);
  const end = last?.content.at(-1);
  if (last?.role === 'user' && (end?.type === 'text' || end?.type === 'tool_result')) {
    last.content = [...last.content.slice(0, -1), { ...end, ...ephemeral }];
  }
  return params;
}

export function partsOf(
  content: readonly Anthropic.ContentBlock[],
  tools: readonly OfferedTool[],
): AssistantPart[] {
  const renamed = renaming(tools);
  return content.flatMap((block): AssistantPart[] => {
    if (block.type === 'text') return [{ type: 'text', text: block.text }];
    if (block.type !== 'tool_use') return [];
    const input = renamed(block.name, asObject(block.input));
    return [{ type: 'tool_call', id: block.id, name: block.name, input }];
  });
}

function renaming(tools: readonly OfferedTool[]) {
  const byName = new Map(tools.map(({ tool, renamed }) => [tool.name, renamed]));
  return (tool: string, args: Record<string, unknown>) => byName.get(tool)?.(args) ?? args;
}

function userBlock(part: UserPart): Anthropic.TextBlockParam | Anthropic.ToolResultBlockParam {
  if (part.type === 'text') return { type: 'text', text: part.text };
  return {
    type: 'tool_result',
    tool_use_id: part.id,
    content: part.content.map(resultBlock),
    ...(part.isError ? { is_error: true } : {}),
  };
}

/** Claude needs its own content back unchanged, such as thinking blocks. */
function assistantBlocks(
  { content, raw }: Extract<AgentMessage, { role: 'assistant' }>,
  renamed: ReturnType<typeof renaming>,
): Anthropic.ContentBlockParam[] {
  if (isOfClaude(raw)) return [...raw.claude];
  return content.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'tool_use', id: part.id, name: part.name, input: renamed(part.name, part.input) },
  );
}

function isOfClaude(raw: unknown): raw is { claude: readonly Anthropic.ContentBlockParam[] } {
  return typeof raw === 'object' && raw !== null && 'claude' in raw && Array.isArray(raw.claude);
}

function resultBlock(content: ResultContent): ResultBlock {
  switch (content.type) {
    case 'text':
      return { type: 'text', text: content.text };
    case 'image': {
      const { mediaType, data } = content;
      if (!imageTypes.includes(mediaType)) return unseen('image', mediaType);
      const media_type = mediaType as Anthropic.Base64ImageSource['media_type'];
      return { type: 'image', source: { type: 'base64', media_type, data } };
    }
    case 'document': {
      const { mediaType, data, title } = content;
      if (mediaType !== 'application/pdf') return unseen('document', mediaType);
      const source = { type: 'base64', media_type: mediaType, data } as const;
      return { type: 'document', source, ...(title === undefined ? {} : { title }) };
    }
  }
}

function unseen(what: string, mediaType: string): Anthropic.TextBlockParam {
  return { type: 'text', text: `[${what} of type ${mediaType || 'unknown'}: it cannot be shown here]` };
}

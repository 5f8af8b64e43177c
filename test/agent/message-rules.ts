import type { IncomingHttpHeaders } from 'node:http';
import type Anthropic from '@anthropic-ai/sdk';

/** Why the API would reject a request; undefined if it would not. */
export function problemOf(
  body: Anthropic.MessageCreateParams,
  headers: IncomingHttpHeaders,
): string | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(String(headers['anthropic-version'])))
    return 'anthropic-version: header is required';
  if (typeof body.model !== 'string') return 'model: Field required';
  if (!Number.isInteger(body.max_tokens) || body.max_tokens < 1) return 'max_tokens: Field required';
  if (!Array.isArray(body.messages) || body.messages.length === 0)
    return 'messages: at least one message is required';
  if (marksIn(body) > 4) return 'A maximum of 4 blocks with cache_control may be provided.';
  return toolProblem(body) ?? messageProblem(body.messages);
}

function toolProblem({ tools = [] }: Anthropic.MessageCreateParams): string | undefined {
  const names = tools.map((tool) => ('name' in tool ? tool.name : ''));
  const wrong = names.find((name) => !/^[a-zA-Z0-9_-]{1,128}$/.test(name));
  if (wrong !== undefined) return `tools: name ${JSON.stringify(wrong)} does not match the pattern`;
  if (new Set(names).size < names.length) return 'tools: Tool names must be unique.';
  for (const [index, tool] of tools.entries()) {
    const problem = 'input_schema' in tool ? schemaProblem(tool.input_schema) : undefined;
    if (problem !== undefined) return `tools.${index}.custom.input_schema${problem}`;
  }
  return undefined;
}

/** The API is this strict only at the top level of a schema. */
function schemaProblem(schema: Record<string, unknown>): string | undefined {
  if (schema.type !== 'object') return '.type: Field required';
  if (['oneOf', 'allOf', 'anyOf'].some((keyword) => keyword in schema))
    return ': input_schema does not support oneOf, allOf, or anyOf at the top level';
  const names = Object.keys((schema.properties ?? {}) as object);
  if (!names.every((name) => /^[a-zA-Z0-9_.-]{1,64}$/.test(name)))
    return ".properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'";
  return undefined;
}

function messageProblem(messages: readonly Anthropic.MessageParam[]): string | undefined {
  if (messages[0]?.role !== 'user') return 'messages: first message must use the "user" role';
  for (const [index, message] of messages.entries()) {
    const content = blocksOf(message);
    if (content.length === 0) return `messages.${index}: all messages must have non-empty content`;
    const problem = content.map(blockProblem).find((found) => found !== undefined);
    if (problem !== undefined) return `messages.${index}: ${problem}`;
    const before = messages[index - 1];
    const asked = before?.role === 'assistant' ? idsOf(before, 'tool_use') : [];
    const answered = idsOf(message, 'tool_result');
    if (asked.some((id) => !answered.includes(id)))
      return `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after`;
    if (answered.some((id) => !asked.includes(id)))
      return `messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks`;
  }
  const last = messages.at(-1)!;
  if (last.role === 'assistant' && idsOf(last, 'tool_use').length > 0)
    return 'messages: `tool_use` ids were found without `tool_result` blocks';
  return undefined;
}

function blockProblem(block: Anthropic.ContentBlockParam): string | undefined {
  if (block.type === 'text' && block.text.trim() === '') return 'text content blocks must be non-empty';
  if (block.type === 'image' && block.source.type === 'base64') {
    if (!/^image\/(jpeg|png|gif|webp)$/.test(block.source.media_type)) return 'media_type: unexpected value';
    if (!/^[A-Za-z0-9+/]+={0,2}$/.test(block.source.data)) return 'image source: invalid base64 data';
  }
  if (block.type !== 'tool_result') return undefined;
  const content = block.content ?? [];
  if (block.is_error && content.length === 0)
    return 'tool_result: content cannot be empty if `is_error` is true';
  if (typeof content === 'string') return undefined;
  return content
    .map((inner) => blockProblem(inner as Anthropic.ContentBlockParam))
    .find((found) => found !== undefined);
}

function marksIn(body: Anthropic.MessageCreateParams): number {
  return JSON.stringify(body).split('"cache_control":{').length - 1;
}

function idsOf(message: Anthropic.MessageParam, type: 'tool_use' | 'tool_result'): string[] {
  return blocksOf(message).flatMap((block) => {
    if (block.type !== type) return [];
    return [block.type === 'tool_use' ? block.id : (block as Anthropic.ToolResultBlockParam).tool_use_id];
  });
}

function blocksOf({ content }: Anthropic.MessageParam): readonly Anthropic.ContentBlockParam[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

import type { ToolView } from '../../api/views.ts';
import { callApi, projectPath } from '../api.ts';
import { exitCodes } from '../exit.ts';
import { McpClient, projectNames } from '../mcp-client.ts';
import { complain, print, printJson } from '../output.ts';
import { type TargetFlags, withSwitchboard } from '../target.ts';
import { readObject, readWords } from './arguments.ts';

export interface CallFlags extends TargetFlags {
  project?: string;
  json?: boolean;
}

interface ToolResult {
  content?: { type: string; text?: string; mimeType?: string; uri?: string }[];
  structuredContent?: unknown;
  isError?: boolean;
}

export async function call(tool: string, words: string[], flags: CallFlags): Promise<number> {
  const given = words.length === 0 ? {} : readObject(words);
  const result = await withSwitchboard(flags, async (url) => {
    const client = await McpClient.connect(url, flags.project);
    try {
      const toolArguments = given ?? readWords(words, await inputSchemaOf(tool, client, url, flags.project));
      return (await client.request('tools/call', { name: tool, arguments: toolArguments })) as ToolResult;
    } finally {
      await client.close();
    }
  });
  if (flags.json) printJson(result);
  else show(result);
  return result.isError ? exitCodes.failed : exitCodes.ok;
}

/** Also finds a tool by its qualified name, which is not listed to clients. */
async function inputSchemaOf(
  tool: string,
  client: McpClient,
  url: string,
  project: string | undefined,
): Promise<unknown> {
  const listed = (await client.list('tools/list', 'tools')).find(({ name }) => name === tool);
  if (listed !== undefined) return listed.inputSchema;
  const projects = project === undefined ? await projectNames(url) : [project];
  for (const name of projects) {
    const { tools } = await callApi<{ tools: ToolView[] }>(url, 'GET', projectPath(name, 'tools'));
    // The endpoint of all projects puts the project's name in front of tools of other projects.
    const isNamed = ({ qualified_name: own }: ToolView) =>
      own === tool || (project === undefined && tool.startsWith(name) && tool.endsWith(own));
    const found = tools.find(isNamed);
    if (found !== undefined) return found.input_schema;
  }
  return undefined;
}

function show({ content = [], structuredContent, isError }: ToolResult): void {
  const say = isError ? complain : print;
  for (const part of content) {
    if (part.type === 'text') say(part.text ?? '');
    else say(`[${part.type}${part.mimeType ? ` ${part.mimeType}` : ''}${part.uri ? ` ${part.uri}` : ''}]`);
  }
  if (content.length === 0 && structuredContent !== undefined) printJson(structuredContent);
}

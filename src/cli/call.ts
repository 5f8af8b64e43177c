import { SwitchboardError } from '../errors.ts';
import { Client } from './client.ts';
import { exitCodes } from './exit.ts';
import { complain, print, printJson } from './output.ts';
import { type TargetFlags, withSwitchboard } from './target.ts';

export interface CallFlags extends TargetFlags {
  project?: string;
  json?: boolean;
}

interface ToolResult {
  content?: { type: string; text?: string; mimeType?: string; uri?: string }[];
  structuredContent?: unknown;
  isError?: boolean;
}

/** Calls one tool and prints what it gives. */
export async function call(tool: string, words: string[], flags: CallFlags): Promise<number> {
  const toolArguments = readArguments(words);
  const result = await withSwitchboard(flags, async (url) => {
    const client = await Client.connect(url, flags.project);
    try {
      return (await client.request('tools/call', { name: tool, arguments: toolArguments })) as ToolResult;
    } finally {
      await client.close();
    }
  });
  if (flags.json) printJson(result);
  else show(result);
  return result.isError ? exitCodes.failed : exitCodes.ok;
}

/** Either one JSON object, or `key=value` words whose values are JSON where they can be, else text. */
export function readArguments(words: string[]): Record<string, unknown> {
  const [first] = words;
  if (words.length === 1 && first!.trimStart().startsWith('{')) {
    const parsed = parse(first!);
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown>;
    throw new SwitchboardError('invalid_config', `The arguments are not a JSON object: ${first}`);
  }
  return Object.fromEntries(
    words.map((word) => {
      const equals = word.indexOf('=');
      if (equals < 1)
        throw new SwitchboardError('invalid_config', `"${word}" is not key=value, nor a JSON object.`);
      const text = word.slice(equals + 1);
      const value = parse(text);
      return [word.slice(0, equals), value === undefined ? text : value];
    }),
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function show({ content = [], structuredContent, isError }: ToolResult): void {
  const say = isError ? complain : print;
  for (const part of content) {
    if (part.type === 'text') say(part.text ?? '');
    else say(`[${part.type}${part.mimeType ? ` ${part.mimeType}` : ''}${part.uri ? ` ${part.uri}` : ''}]`);
  }
  if (content.length === 0 && structuredContent !== undefined) printJson(structuredContent);
}
